"""Consumers of KIP-848, a client library each, unmodified."""
