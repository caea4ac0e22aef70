"""Heartbeats on the wire: parked until there is news, cheap where they are repeated."""
