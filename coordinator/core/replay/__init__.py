"""Replay: records into the state of a shard, live and at a start; nothing else changes it."""
