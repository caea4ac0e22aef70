"""Decodes blocks of record batches to Arrow columns, without Spark and without per-record calls."""
