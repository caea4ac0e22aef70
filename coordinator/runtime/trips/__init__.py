"""Trips: when a request passed each stage of its way, for servers that export traces."""
