"""Offsets at run time: reads, deletion, expiry, and transactions that nobody ends."""
