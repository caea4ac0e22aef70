"""Client connections: framing, response order, limits, and which connections are closed."""
