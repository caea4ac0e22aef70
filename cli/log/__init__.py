"""`muster log`: read, check, import, export and back up the log of groups."""
