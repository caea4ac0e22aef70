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

    @property
    def has_metadata(self) -> bool:
        """Whether any partition has metadata."""
        return any(self.metadata)

    def rows(self) -> Iterator[OffsetRow]:
        """One row per partition."""
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

    The log encodes them directly, without a key and a value object each. None has an expiry of its
    own.
    """

    group: GroupId
    topic: TopicName
    topic_id: TopicId
    commit_timestamp: int
    offsets: OffsetColumns
