"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and the rebalance."""
