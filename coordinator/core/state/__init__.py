"""The state of a shard: its groups, their members, and the outcome of a command."""
