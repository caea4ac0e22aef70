"""What an import notes of a partition: up to where its log came from elsewhere.

What is written here has a record at every offset. A log that was imported has the gaps that
compaction left, and only this note tells the two apart. It lies in ``kept``, beside what
``storage.log.trim`` keeps there.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from model.ids import LogOffset, LogPartition

IMPORTED_KEY = b"\x03"

UNKNOWN = -1
_IMPORTED = struct.Struct(">qq")


class Imported(NamedTuple):
    """``end`` is the next offset after what was imported.

    ``missing_offsets`` are those below it without a record, ``UNKNOWN`` where that was not
    counted.
    """

    end: LogOffset
    missing_offsets: int


NOT_IMPORTED = Imported(LogOffset(0), 0)


class Kept(Protocol):
    """A store, as far as it is read here."""

    def kept(
        self, partition: LogPartition, key_prefix: bytes = b""
    ) -> Iterable[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        ...


def pack_imported(imported: Imported) -> dict[bytes, bytes | None]:
    """What ``PartitionRewrite.kept`` takes."""
    return {IMPORTED_KEY: _IMPORTED.pack(*imported)}


def read_imported(store: Kept, partition: LogPartition) -> Imported:
    """What was noted of a partition: that nothing was imported, where nothing was noted."""
    for _, packed in store.kept(partition, IMPORTED_KEY):
        end, missing = _IMPORTED.unpack(packed)
        return Imported(LogOffset(end), missing)
    return NOT_IMPORTED
