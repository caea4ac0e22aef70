"""A start: the state of the shards out of the log, and what is answered meanwhile."""
