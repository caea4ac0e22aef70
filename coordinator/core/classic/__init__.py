"""Classic groups: joins, syncs, heartbeats, leaving, and the rebalance."""
