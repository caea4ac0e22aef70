"""The history of every group, computed in one pass over its records."""
