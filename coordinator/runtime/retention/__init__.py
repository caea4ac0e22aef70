"""Log retention: how much of the log is kept, and backups of the store."""
