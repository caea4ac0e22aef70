"""Boards and rules: what Prometheus says of them, and whether their queries find anything."""
