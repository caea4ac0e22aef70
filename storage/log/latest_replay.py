"""Replay of the log that follows a checkpoint, to find what it changed in ``latest``.

Only the records from the checkpoint's position on are read. An entry from below the position never
replaces one from above it: of two committed offsets the one with the higher log offset counts
(``storage.log.fold``). The store writes a marker's changes to ``latest`` together with the marker,
so those that come from transactional records below the position are in the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from storage.columnar.batch_columns import read_batch_columns
from storage.columnar.block_fold import BlockFold, Changes
from storage.columnar.record_columns import read_record_columns
from storage.log.compression import decompress

BLOCK_BYTES = 4 << 20
"""Batches decoded at once; a batch that is larger is decoded alone."""


def replay_latest(batches: Iterable[bytes]) -> Iterator[Changes]:
    """The changes of the batches, block by block, in log order.

    Raises ``CodecError`` for a damaged batch.
    """
    fold = BlockFold()
    for block in _take_blocks(batches):
        columns = read_batch_columns(block)
        yield fold.apply(columns, read_record_columns(columns, decompress))


def _take_blocks(batches: Iterable[bytes]) -> Iterator[list[bytes]]:
    block: list[bytes] = []
    size = 0
    for batch in batches:
        if block and size + len(batch) > BLOCK_BYTES:
            yield block
            block, size = [], 0
        block.append(batch)
        size += len(batch)
    if block:
        yield block
