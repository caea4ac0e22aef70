"""TLS between the sockets and the connections of the Kafka wire."""
