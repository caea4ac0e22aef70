"""Requests of the Kafka wire that are traced: chosen when the server is built, else not there."""
