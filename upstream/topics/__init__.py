"""Topics of the cluster, as the coordinator and the Kafka wire see them here."""
