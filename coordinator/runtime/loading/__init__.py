"""Start-up: loads the shards from the log, and answers requests meanwhile."""
