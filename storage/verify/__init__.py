"""Verifying a log: every rule that a store, or Kafka's segments, must keep. Nothing is changed."""
