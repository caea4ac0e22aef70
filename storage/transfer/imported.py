"""The import marker of a partition: the offset up to which its log was imported.

Muster writes a record at every offset, but an imported log may have offset gaps from compaction.
The marker tells such gaps from lost records. It is stored in ``kept``, beside the entries of
``storage.log.trim``.
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
    """The import marker: ``end`` is the log end offset after the import.

    ``missing_offsets`` is the number of offsets below it without a record, or ``UNKNOWN``.
    """

    end: LogOffset
    missing_offsets: int


NOT_IMPORTED = Imported(LogOffset(0), 0)


class Kept(Protocol):
    """The read access that this module needs from a store."""

    def kept(
        self, partition: LogPartition, key_prefix: bytes = b""
    ) -> Iterable[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        ...


def pack_imported(imported: Imported) -> dict[bytes, bytes | None]:
    """Encode the marker for ``PartitionRewrite.kept``."""
    return {IMPORTED_KEY: _IMPORTED.pack(*imported)}


def read_imported(store: Kept, partition: LogPartition) -> Imported:
    """Read the marker of a partition; ``NOT_IMPORTED`` if it has none."""
    for _, packed in store.kept(partition, IMPORTED_KEY):
        end, missing = _IMPORTED.unpack(packed)
        return Imported(LogOffset(end), missing)
    return NOT_IMPORTED
