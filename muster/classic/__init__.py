"""Members of classic groups."""
