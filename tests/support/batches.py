"""Batches one after another."""

from __future__ import annotations

from collections.abc import Iterator

from storage.codec.batches import Batch, Decompress, decode_batch


def decode_batches(data: bytes, *, decompress: Decompress | None = None) -> Iterator[Batch]:
    """The batches that ``data`` consists of, each with its CRC verified.

    ``decompress`` is needed for compressed batches only (``storage.log.compression`` has one).
    """
    pos = 0
    while pos < len(data):
        batch = decode_batch(data, pos, decompress=decompress)
        yield batch
        pos += batch.size
