"""The interface of a readable log of groups: its partitions, their offset ranges, and slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql.datasource import InputPartition

from pipeline.decoding.bounds import Bounds
from pipeline.decoding.scan import ScanPosition
from pipeline.source.logs.marks import Mark
from pipeline.source.logs.places import Edge
from pipeline.source.server.server_access import ServerAccess


@dataclass(frozen=True, slots=True)
class SegmentSlice:
    """The batches that begin in bytes [begin, end) of a file; reading starts at ``start``.

    ``edges`` are bytes by which a task verifies that the file is still the planned one.
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
        """The size in bytes."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class StoreSlice:
    """A range of offsets in a partition of a store."""

    partition: int
    folder: str
    bounds: Bounds
    weight: int


@dataclass(frozen=True, slots=True)
class ServerSlice:
    """A range of offsets in a partition of a live server's log."""

    partition: int
    access: ServerAccess
    bounds: Bounds
    weight: int


@dataclass(frozen=True, slots=True)
class LossSlice:
    """No bytes, only a row that reports a data loss in a partition."""

    partition: int
    offset: int
    detail: str


Slice = SegmentSlice | StoreSlice | ServerSlice | LossSlice


class LogTask(InputPartition):
    """The slices that one Spark task reads."""

    def __init__(self, slices: Sequence[Slice]) -> None:
        self.slices = tuple(slices)


class GroupLog(Protocol):
    """An opened path. All methods raise ``SourceError`` if it cannot be read."""

    @property
    def partitions(self) -> tuple[int, ...]:
        """The existing partitions, ascending."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes worth reporting that are not errors."""
        ...

    @property
    def identity(self) -> str | None:
        """An identifier of this log that never changes; ``None`` if unknown."""
        ...

    def beginning(self, partition: int) -> int:
        """The lowest offset that may exist."""
        ...

    def end(self, partition: int) -> int:
        """The next offset of the partition."""
        ...

    def find_time(self, partition: int, wall_ms: int) -> int | None:
        """The first offset whose record has this timestamp or a later one."""
        ...

    def find_next(self, partition: int, start: int, end: int) -> int:
        """The lowest offset of a batch from ``start`` and before ``end``, else ``end``.

        Lower if bytes cannot be read.
        """
        ...

    def find_mark(self, partition: int, start: int, end: int) -> Mark | None:
        """The mark of the last record from ``start`` and before ``end``."""
        ...

    def find_change(self, partition: int, mark: Mark) -> str | None:
        """Why and where the log is not the one of the mark; ``None`` if it may be."""
        ...

    def plan(
        self, wanted: Sequence[tuple[int, Bounds]], min_slices: int | None
    ) -> list[list[Slice]]:
        """Slices of these partitions, grouped in tasks of similar size."""
        ...

    def refresh(self) -> None:
        """Read the current state of the files."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...


def count_slices(weight: int, total: int, most: int, least: int | None) -> int:
    """The number of slices of a range, none heavier than ``most``.

    All ranges, which weigh ``total``, get ``least`` slices or slightly more in total.
    """
    count = -(-weight // most)
    if least is not None:
        count = max(count, -(-weight * least // total))
    return min(count, weight)


def pack_slices(
    slices: Sequence[SegmentSlice | StoreSlice | ServerSlice], most: int
) -> list[list[Slice]]:
    """Pack small slices into tasks, because each task has a fixed cost."""
    tasks: list[list[Slice]] = []
    room = 0
    for part in slices:
        if not tasks or part.weight > room:
            tasks.append([])
            room = most
        tasks[-1].append(part)
        room -= part.weight
    return tasks
