"""One connection to a server: channel, session stream, unary calls, and leases."""
