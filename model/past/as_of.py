"""Points in the past of a group's log partition, for queries with ``as_of``."""

from __future__ import annotations

from typing import TypeAlias

from model.ids import LogOffset, LogPartition
from model.value import value


@value
class AsOfTimestamp:
    """State as of a wall-clock time in ms.

    Batches are applied in log order, up to the first that has a later record.
    """

    timestamp_ms: int


@value
class AsOfOffset:
    """State as of an offset: batches whose base offset is at or below it are applied, whole."""

    offset: LogOffset


AsOf: TypeAlias = AsOfTimestamp | AsOfOffset


@value
class LogPosition:
    """The last batch applied: its last offset and timestamp (wall ms), both -1 if there is none."""

    partition: LogPartition
    offset: LogOffset
    timestamp_ms: int
