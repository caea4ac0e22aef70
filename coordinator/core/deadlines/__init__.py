"""Deadlines of members and groups as data; whoever keeps the time looks at them."""
