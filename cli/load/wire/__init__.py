"""Connections to a Kafka listener: TLS, SASL, frames, and when requests are due."""
