"""Committed offsets that are in the cluster."""
