"""Where topics and their records are: stored here, or in a cluster."""
