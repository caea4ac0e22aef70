"""Kafka's segments as sorted files that a store takes, made by many tasks."""
