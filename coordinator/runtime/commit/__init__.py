"""Group commit: the writer, its batches, and what is durable."""
