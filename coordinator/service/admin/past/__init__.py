"""What was: causes of rebalances, owners over time, past offsets, the log and its records."""
