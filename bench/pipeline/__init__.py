"""The pipeline beside Kafka's own tool that reads the same files."""
