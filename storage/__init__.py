"""The log: codec of records and record batches, and the stores that keep them."""
