"""APIs of committed offsets, in transactions and without."""
