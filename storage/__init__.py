"""The log: the codec of records and record batches, and the stores that persist them."""
