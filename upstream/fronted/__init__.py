"""The coordinator as seen from both doors when Muster stands in front of a cluster."""
