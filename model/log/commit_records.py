"""The offsets of one commit as columns, used from the request to the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from model.ids import (
    GroupId,
    TopicId,
    TopicName,
)

Column: TypeAlias = "tuple[int, ...] | NDArray[np.signedinteger]"
"""One number per partition; an array if decoded from bytes in one step."""

OffsetRow: TypeAlias = tuple[int, int, int, str]
"""Partition, offset, leader epoch (-1 for none) and metadata."""


class OffsetColumns(NamedTuple):
    """Offsets of partitions of one topic. ``metadata`` is empty if no partition has any.

    ``keys`` are the partitions' record keys, if the caller keeps them for repeated commits.
    """

    partitions: Column
    offsets: Column
    leader_epochs: Column
    metadata: tuple[str, ...] = ()
    keys: Sequence[bytes] = ()

    def rows(self) -> Iterator[OffsetRow]:
        """One row per partition."""
        columns = to_ints(self.partitions), to_ints(self.offsets), to_ints(self.leader_epochs)
        metadata = self.metadata or ("",) * len(self.partitions)
        return zip(*columns, metadata, strict=True)


class OffsetRows:
    """Rows that become columns. Very many are added in slices."""

    __slots__ = ("_leader_epochs", "_metadata", "_offsets", "_partitions")

    def __init__(self) -> None:
        self._partitions: list[int] = []
        self._offsets: list[int] = []
        self._leader_epochs: list[int] = []
        self._metadata: list[str] = []

    def add(self, rows: Iterable[OffsetRow]) -> None:
        """Add rows after those that were added before."""
        table = tuple(rows)
        if table:
            partitions, offsets, leader_epochs, metadata = zip(*table, strict=True)
            self._partitions += partitions
            self._offsets += offsets
            self._leader_epochs += leader_epochs
            self._metadata += metadata

    def columns(self) -> OffsetColumns:
        """All rows as columns."""
        return OffsetColumns(
            tuple(self._partitions),
            tuple(self._offsets),
            tuple(self._leader_epochs),
            tuple(self._metadata) if any(self._metadata) else (),
        )


def make_offset_columns(rows: Iterable[OffsetRow]) -> OffsetColumns:
    """The columns of a few rows."""
    columns = tuple(zip(*rows, strict=True))
    if not columns:
        return OffsetColumns((), (), ())
    partitions, offsets, leader_epochs, metadata = columns
    return OffsetColumns(partitions, offsets, leader_epochs, metadata if any(metadata) else ())


def to_ints(column: Column) -> Sequence[int]:
    """The numbers of a column as Python's integers."""
    if isinstance(column, tuple):
        return column
    numbers: list[int] = column.tolist()
    return numbers


class OffsetCommits(NamedTuple):
    """Records of type 1 for partitions of one topic, one for each row of ``offsets``.

    The log encodes them directly, without a key and a value object each. None has an expiry of its
    own.
    """

    group: GroupId
    topic: TopicName
    topic_id: TopicId
    commit_timestamp: int
    offsets: OffsetColumns
