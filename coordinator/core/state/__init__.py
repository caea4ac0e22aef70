"""What a shard holds: its groups, their members, and what a command may change of them."""
