"""The shell around the core: one writer per shard, group commit, timers, target computation."""
