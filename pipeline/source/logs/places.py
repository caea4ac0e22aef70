"""Bytes of segment files at which a batch is known to end, as long as the files are the same.

A broker replaces a segment by a compacted one of the same name, and a new leader has it cut and
written on: what was known of the bytes of a file is then of another file.
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
"""Places are kept so far apart, and the last one: what is walked again is not more than this."""

_EDGE_BYTES = 256
"""Longer than a header, which has an offset and a CRC, and most batches of one record."""

_BEGINNING = ScanPosition(0, 0)


@dataclass(frozen=True, slots=True)
class Edge:
    """Bytes of a file, by which it is known again: ``tail`` ends at ``position``."""

    position: int
    tail: bytes

    def is_in(self, source: ByteSource) -> bool:
        """Whether the file has these bytes there."""
        return source.read(self.position - len(self.tail), len(self.tail)) == self.tail


def read_edge(source: ByteSource, position: int) -> Edge:
    """The bytes before a position, but for zeros, which a broker allocates and then writes over."""
    start = max(0, position - _EDGE_BYTES)
    tail = source.read(start, position - start).rstrip(b"\0")
    return Edge(start + len(tail), tail)


def check_edges(source: ByteSource, edges: Iterable[Edge], file: str) -> None:
    """Raises ``LogReplaced`` where the file is no longer the one that was planned with."""
    for edge in edges:
        if not edge.is_in(source):
            raise LogReplaced(
                f"{file}, byte {edge.position}: the file was replaced while it was read, as a "
                "broker does that compacts it; read it again"
            )


@dataclass(frozen=True, slots=True)
class _Place:
    after: ScanPosition
    head: Edge
    """The header of the batch that ends here, with its offset and CRC."""


class Places:
    """What is known of each file: some places, the last of which tells whether it is the same."""

    def __init__(self) -> None:
        self._known: dict[Path, list[_Place]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._known.values()))

    def check(self, path: Path, source: ByteSource) -> None:
        """Forgets what was known of a file that is another now."""
        known = self._known.get(path)
        # No byte before a batch was taken away while the batch lies where it did.
        if known and not known[-1].head.is_in(source):
            del self._known[path]

    def find(self, path: Path, offset: int) -> ScanPosition:
        """The last place before which no record from an offset on can be."""
        known = self._known.get(path, [])
        index = bisect_right(known, offset, key=lambda place: place.after.next_offset)
        return known[index - 1].after if index else _BEGINNING

    def add(self, path: Path, source: ByteSource, batch_at: int, after: ScanPosition) -> None:
        """The batch at a byte ends, and the next one may begin, at ``after``."""
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
        """Forgets all other files."""
        there = set(paths)
        for path in self._known.keys() - there:
            del self._known[path]
