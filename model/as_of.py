"""Positions in the past of a group's log partition, for questions about the state then."""

from __future__ import annotations

from typing import TypeAlias

from model.ids import LogOffset, LogPartition
from model.value import value


@value
class AsOfTimestamp:
    """Wall ms. All batches count up to the first, in log order, that has a later record."""

    timestamp_ms: int


@value
class AsOfOffset:
    """All batches count that begin at or before the offset: the one that holds it does, whole."""

    offset: LogOffset


AsOf: TypeAlias = AsOfTimestamp | AsOfOffset


@value
class LogPosition:
    """The last batch that counts: its last offset and timestamp (wall ms); -1 where none does."""

    partition: LogPartition
    offset: LogOffset
    timestamp_ms: int
