"""Kafka's segment files: the record batches of a partition in plain files.

``folder`` finds them, ``segment_reader`` reads them, ``segment_writer`` writes them.
"""
