"""What can be read as the log of groups: its partitions, where they begin and end, and slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql.datasource import InputPartition

from pipeline.decoding.bounds import Bounds
from pipeline.decoding.scan import ScanPosition


@dataclass(frozen=True, slots=True)
class SegmentSlice:
    """The batches that begin in bytes [begin, end) of a file; reading starts at ``start``."""

    partition: int
    file: str
    start: ScanPosition
    begin: int
    end: int
    bounds: Bounds

    @property
    def weight(self) -> int:
        """Bytes."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class StoreSlice:
    """Offsets of a partition of a store, as its bounds say."""

    partition: int
    folder: str
    bounds: Bounds
    weight: int


Slice = SegmentSlice | StoreSlice


class LogTask(InputPartition):
    """What one task of Spark reads."""

    def __init__(self, slices: Sequence[Slice]) -> None:
        self.slices = tuple(slices)


class GroupLog(Protocol):
    """An opened path. Everything raises ``SourceError`` where it cannot be read."""

    @property
    def partitions(self) -> tuple[int, ...]:
        """The partitions that are there, in their order."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines about what was found and is worth knowing, but no error."""
        ...

    def beginning(self, partition: int) -> int:
        """The first offset that can be there."""
        ...

    def end(self, partition: int) -> int:
        """The offset at which the partition goes on."""
        ...

    def find_time(self, partition: int, wall_ms: int) -> int | None:
        """The first offset whose record has this time or a later one."""
        ...

    def plan(
        self, wanted: Sequence[tuple[int, Bounds]], min_slices: int | None
    ) -> list[list[Slice]]:
        """Slices of these partitions, in tasks that are alike in size."""
        ...

    def refresh(self) -> None:
        """Looks again at what is there."""
        ...

    def close(self) -> None:
        """Lets go of the files."""
        ...


def pack_slices(slices: Sequence[Slice], most: int) -> list[list[Slice]]:
    """Small slices together, so that no task is only a start and an end."""
    tasks: list[list[Slice]] = []
    room = 0
    for part in slices:
        if not tasks or part.weight > room:
            tasks.append([])
            room = most
        tasks[-1].append(part)
        room -= part.weight
    return tasks
