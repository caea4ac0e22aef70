"""Positions in segment files where a batch is known to end, while the files are unchanged.

A broker replaces a segment by a compacted one of the same name, and a new leader has it truncated
and appended to: what was known of the file is then invalid.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipeline.decoding.byte_source import ByteSource
from pipeline.decoding.scan import ScanPosition
from pipeline.source.errors import LogReplaced
from storage.codec.batches import HEADER_SIZE

_APART_BYTES = 1 << 20
"""The distance of stored positions, besides the last: the limit on what is scanned again."""

_EDGE_BYTES = 256
"""Longer than a batch header, which has an offset and CRC, and than most batches of one record."""

_BEGINNING = ScanPosition(0, 0)


@dataclass(frozen=True, slots=True)
class Edge:
    """Bytes by which a file is recognized: ``tail`` ends at ``position``."""

    position: int
    tail: bytes

    def is_in(self, source: ByteSource) -> bool:
        """Whether the file has these bytes at this position."""
        return source.read(self.position - len(self.tail), len(self.tail)) == self.tail


def read_edge(source: ByteSource, position: int) -> Edge:
    """The bytes before a position, without trailing zeros, which a broker preallocates."""
    start = max(0, position - _EDGE_BYTES)
    tail = source.read(start, position - start).rstrip(b"\0")
    return Edge(start + len(tail), tail)


def check_edges(source: ByteSource, edges: Iterable[Edge], file: str) -> None:
    """Raise ``LogReplaced`` if the file is not the one that was planned."""
    for edge in edges:
        if not edge.is_in(source):
            raise LogReplaced(
                f"{file}, byte {edge.position}: the file was replaced while it was read, as by a "
                "broker's log cleaner; read it again"
            )


@dataclass(frozen=True, slots=True)
class _Place:
    after: ScanPosition
    head: Edge
    """The header of the batch that ends here, with its offset and CRC."""


class Places:
    """Known positions in each file; the last one tells whether the file is unchanged."""

    def __init__(self) -> None:
        self._known: dict[Path, list[_Place]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._known.values()))

    def check(self, path: Path, source: ByteSource) -> None:
        """Forget a file that was replaced."""
        known = self._known.get(path)
        # While the last known batch is in its position, no byte before it was removed.
        if known and not known[-1].head.is_in(source):
            del self._known[path]

    def find(self, path: Path, offset: int) -> ScanPosition:
        """The last position before which no record from ``offset`` can be."""
        known = self._known.get(path, [])
        index = bisect_right(known, offset, key=lambda place: place.after.next_offset)
        return known[index - 1].after if index else _BEGINNING

    def add(self, path: Path, source: ByteSource, batch_at: int, after: ScanPosition) -> None:
        """Add a position: the batch at ``batch_at`` ends at ``after``."""
        known = self._known.setdefault(path, [])
        if known and known[-1].after.position >= after.position:
            return
        head = source.read(batch_at, HEADER_SIZE)
        place = _Place(after, Edge(batch_at + len(head), head))
        if len(known) > 1 and after.position - known[-2].after.position < _APART_BYTES:
            known[-1] = place
        else:
            known.append(place)

    def keep(self, paths: Iterable[Path]) -> None:
        """Forget all other files."""
        there = set(paths)
        for path in self._known.keys() - there:
            del self._known[path]
