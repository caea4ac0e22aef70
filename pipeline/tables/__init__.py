"""Tables of what the groups did, made from the records of their log."""
