"""Bulk import: Spark tasks convert Kafka's segments to sorted files that a store ingests."""
