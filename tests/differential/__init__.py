"""The same requests to a real Kafka and to Muster, and the same answers."""
