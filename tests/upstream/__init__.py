"""Muster in front of real Kafka clusters, with every client and traffic all the while."""
