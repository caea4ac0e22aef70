"""The shell around the state machines: one writer a shard, group commit, timers, targets."""
