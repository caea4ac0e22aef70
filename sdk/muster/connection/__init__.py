"""One connection to a server: its channel, its session stream, unary calls, and leases."""
