"""Taking a group over from the cluster and giving it back, and what is done when it goes wrong."""
