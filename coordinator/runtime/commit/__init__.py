"""Group commit: the writer, batches, and what is durable."""
