"""The client of the cluster: connections to its brokers, in Muster's own name."""
