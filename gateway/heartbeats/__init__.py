"""Heartbeats on the wire: parked until there is a change, and cached while there is none."""
