"""What the log holds: records of each kind of group, offsets, transactions."""
