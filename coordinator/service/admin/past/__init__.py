"""What was: causes of rebalances, owners over time, the log and its records."""
