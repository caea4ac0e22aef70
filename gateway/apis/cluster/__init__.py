"""APIs of the server itself: versions, configs, the cluster."""
