"""How Muster shows its own identity to a Kafka cluster: a client's side of TLS and SASL."""
