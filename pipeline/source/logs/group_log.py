"""What can be read as the log of groups: its partitions, where they begin and end, and slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql.datasource import InputPartition

from pipeline.decoding.bounds import Bounds
from pipeline.decoding.scan import ScanPosition
from pipeline.source.logs.marks import Mark
from pipeline.source.logs.places import Edge


@dataclass(frozen=True, slots=True)
class SegmentSlice:
    """The batches that begin in bytes [begin, end) of a file; reading starts at ``start``.

    ``edges`` are bytes of the file by which a task knows that it is the one that was planned with.
    """

    partition: int
    file: str
    start: ScanPosition
    begin: int
    end: int
    bounds: Bounds
    edges: tuple[Edge, ...] = ()

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


@dataclass(frozen=True, slots=True)
class LossSlice:
    """No bytes, but a row that says what of a partition is lost."""

    partition: int
    offset: int
    detail: str


Slice = SegmentSlice | StoreSlice | LossSlice


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

    @property
    def identity(self) -> str | None:
        """What no other log has, whatever is written to this one; ``None`` where nothing says."""
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

    def find_next(self, partition: int, start: int, end: int) -> int:
        """The first offset from ``start`` on that a batch has, or ``end`` where none before it is.

        Lower where bytes cannot be read.
        """
        ...

    def find_mark(self, partition: int, start: int, end: int) -> Mark | None:
        """The mark of the last record from ``start`` on and before ``end``."""
        ...

    def find_change(self, partition: int, mark: Mark) -> str | None:
        """Why the log is not the one that the mark is of, and where; ``None`` where it may be."""
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


def count_slices(weight: int, total: int, most: int, least: int | None) -> int:
    """In how many slices a range is read, of which none weighs more than ``most``.

    Those of all ranges, which weigh ``total``, are together ``least`` or a few more.
    """
    count = -(-weight // most)
    if least is not None:
        count = max(count, -(-weight * least // total))
    return min(count, weight)


def pack_slices(slices: Sequence[SegmentSlice | StoreSlice], most: int) -> list[list[Slice]]:
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
