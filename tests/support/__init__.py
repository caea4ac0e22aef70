"""Shared test helpers: a store in memory, virtual time, invariants, Kafka clients."""
