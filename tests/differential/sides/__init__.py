"""The two sides: a Kafka, a Muster, and what is done to either."""
