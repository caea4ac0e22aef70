"""`muster load`: load tests of a server of the Kafka protocol, or of Muster's sessions."""
