"""The ledger of rebalances."""
