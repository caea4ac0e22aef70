"""Benchmarks of the pipeline against Kafka's own tool on the same files."""
