"""In front of a Kafka cluster: its groups are taken over and given back while they work."""
