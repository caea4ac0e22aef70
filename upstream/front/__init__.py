"""What the Kafka wire sees of the cluster behind."""
