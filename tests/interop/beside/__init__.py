"""Kafka's own tools and admin client, and logs that move, beside a Kafka."""
