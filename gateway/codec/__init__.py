"""Kafka's wire format by kio's entity classes: requests in, responses out."""
