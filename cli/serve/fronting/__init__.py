"""The server in front of a cluster: its parts, made from the settings and put together."""
