"""Listeners as settings: their endpoints, protocols, TLS, and the rules between them."""
