"""Import and export of logs, bulk imports, backup and restore."""
