"""The audit log: lines of JSON, how many of them, and the file that they are written to."""
