"""Decodes consecutive record batches."""

from __future__ import annotations

from collections.abc import Iterator

from storage.codec.batches import Batch, Decompress, decode_batch


def decode_batches(data: bytes, *, decompress: Decompress | None = None) -> Iterator[Batch]:
    """The batches in ``data``, each with its CRC verified.

    Only compressed batches need ``decompress`` (``storage.log.compression`` has one).
    """
    pos = 0
    while pos < len(data):
        batch = decode_batch(data, pos, decompress=decompress)
        yield batch
        pos += batch.size
