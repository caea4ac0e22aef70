"""What the wire asks of those that know the cluster, and the passing on of requests to it."""
