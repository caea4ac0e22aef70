"""Committed offsets: commits, transactions, producers, expiry, deleted topics."""
