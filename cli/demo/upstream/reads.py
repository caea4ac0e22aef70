"""Which records a group has read, and which twice, from its members' records. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from cli.demo.events import Event, Kind

_COUNT_MAX = 255


class Reads:
    """How often each record was read. ``again``: an owner read one twice, a line for each."""

    def __init__(self) -> None:
        self.again: list[str] = []
        self._counts: dict[int, bytearray] = {}
        self._positions: dict[tuple[str, int], int] = {}

    def add(self, event: Event) -> None:
        """Note reads, and where an ownership begins; the events of one worker are in order."""
        if event.kind is Kind.ASSIGNED:
            for partition in event.partitions:
                self._positions.pop((event.worker, partition), None)
        elif event.kind is Kind.READ:
            for partition, first in event.firsts.items():
                self._add_range(event.worker, partition, first, event.offsets[partition])

    def count_missing(self, ends: Mapping[int, int]) -> int:
        """How many records before these ends nobody has read."""
        return sum(
            max(end - len(counts), 0) + counts[:end].count(0)
            for end, counts in ((end, self._find(number)) for number, end in ends.items())
        )

    def count_read(self) -> int:
        """How many records were read."""
        return sum(len(counts) - counts.count(0) for counts in self._counts.values())

    def count_duplicates(self) -> int:
        """How many reads were of records that had been read before."""
        return sum(sum(counts) for counts in self._counts.values()) - self.count_read()

    def _add_range(self, worker: str, partition: int, first: int, end: int) -> None:
        position = self._positions.get((worker, partition), first)
        if first < position:
            self.again.append(f"{worker} read partition {partition} from {first} on again")
        self._positions[worker, partition] = end
        counts = self._find(partition)
        if len(counts) < end:
            counts.extend(bytes(end - len(counts)))
        for offset in range(first, end):
            counts[offset] = min(counts[offset] + 1, _COUNT_MAX)

    def _find(self, partition: int) -> bytearray:
        return self._counts.setdefault(partition, bytearray())
