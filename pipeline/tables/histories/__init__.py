"""The history of every group, in one pass over its records."""
