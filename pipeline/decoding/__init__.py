"""Blocks of record batches into Arrow columns, without Spark and without a call a record."""
