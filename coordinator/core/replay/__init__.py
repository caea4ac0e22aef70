"""Replay: applies records to the state of a shard, live and on load. Nothing else modifies it."""
