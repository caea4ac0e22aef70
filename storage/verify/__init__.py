"""Read-only verification of logs, of stores and of Kafka's segment files."""
