"""How much of the log is kept, and backups of it."""
