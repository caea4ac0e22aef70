"""Columnar decoding of record batches: bytes in, numpy arrays out, no state.

``codec.batches`` decodes one batch into objects and defines the format. This package decodes whole
blocks of batches into columns, for readers of long logs: import, verification, pipelines.
"""
