"""What was: points in the past, causes and ledger of rebalances, owners, changes of offsets."""
