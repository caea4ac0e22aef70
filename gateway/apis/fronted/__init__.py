"""How APIs are served by a node that stands in front of a cluster."""
