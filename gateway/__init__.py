"""The Kafka listener: connections, the wire protocol, and one module per API."""
