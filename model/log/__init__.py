"""Records of the log: each kind of group, offsets, transactions."""
