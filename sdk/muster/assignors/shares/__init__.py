"""Shares: how many partitions of each kind each member gets, and exchanges that balance them."""
