"""`muster log`: the log of groups, in a store, in Kafka's segment files, and between the two."""
