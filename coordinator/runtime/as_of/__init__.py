"""What a group was at a position in the past, read by a process of its own."""
