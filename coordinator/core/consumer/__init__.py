"""Members of the consumer protocol: heartbeat, reconciliation, leaving, static members."""
