"""Offsets at run time: reads, deletion, expiry, and timeouts of open transactions."""
