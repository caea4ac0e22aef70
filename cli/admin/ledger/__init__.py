"""`muster why` and `muster timeline`: the rebalances of a group."""
