"""Offsets of one commit, as columns: from the request that names them to the log."""

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
"""Numbers of partitions in their order; an array where they are read from bytes at once."""

OffsetRow: TypeAlias = tuple[int, int, int, str]
"""Partition, offset, leader epoch (-1 for none) and metadata."""


class OffsetColumns(NamedTuple):
    """Offsets of partitions of one topic. ``metadata`` is empty where no partition has any.

    ``keys`` are the record keys of the partitions, where somebody who commits them again and again
    keeps them.
    """

    partitions: Column
    offsets: Column
    leader_epochs: Column
    metadata: tuple[str, ...] = ()
    keys: Sequence[bytes] = ()

    @property
    def has_metadata(self) -> bool:
        """Whether any partition has metadata."""
        return any(self.metadata)

    def rows(self) -> Iterator[OffsetRow]:
        """Each partition's row."""
        columns = _to_ints(self.partitions), _to_ints(self.offsets), _to_ints(self.leader_epochs)
        metadata = self.metadata or ("",) * len(self.partitions)
        return zip(*columns, metadata, strict=True)


def make_offset_columns(rows: Iterable[OffsetRow]) -> OffsetColumns:
    """The columns of these rows."""
    table = tuple(rows)
    if not table:
        return OffsetColumns((), (), ())
    partitions, offsets, leader_epochs, metadata = zip(*table, strict=True)
    return OffsetColumns(partitions, offsets, leader_epochs, metadata if any(metadata) else ())


def _to_ints(column: Column) -> Sequence[int]:
    if isinstance(column, tuple):
        return column
    numbers: list[int] = column.tolist()
    return numbers


class OffsetCommits(NamedTuple):
    """Records of type 1 for partitions of one topic, one for each row of ``offsets``.

    The log takes them as they are, without a key and a value made for each. None has an expiry of
    its own.
    """

    group: GroupId
    topic: TopicName
    topic_id: TopicId
    commit_timestamp: int
    offsets: OffsetColumns
