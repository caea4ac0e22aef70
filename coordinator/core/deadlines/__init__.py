"""Deadlines of members and groups, as data: the caller that owns the clock polls them."""
