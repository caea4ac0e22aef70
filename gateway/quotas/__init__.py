"""Quotas and limits of the Kafka wire: metered connections, and who may connect."""
