"""Kafka's wire format, driven by kio's entity classes: decodes requests, encodes responses."""
