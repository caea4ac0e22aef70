"""Tables of the history of groups, computed from the records of their log."""
