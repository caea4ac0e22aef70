"""Kafka's segment files: a partition's record batches in plain files, read and written.

`folder` finds them, `reader` reads them, `writer` writes them, `errors` says what can be wrong.
"""
