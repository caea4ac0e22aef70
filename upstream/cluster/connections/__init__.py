"""Connections to brokers: opening them, frames, requests and answers."""
