"""A classic group: its record, its rebalance in progress, and what its members send."""
