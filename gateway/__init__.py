"""The Kafka wire: connections, and one module an API."""
