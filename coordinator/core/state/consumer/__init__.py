"""A consumer group of KIP-848: its members, its targets, and the numbers of its partitions."""
