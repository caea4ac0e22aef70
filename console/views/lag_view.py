"""The lag of a group, from what FetchOffsets answers."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Final, NamedTuple

from muster.v1 import types_pb2
from wording.lag import compute_lag

SLICE: Final = 2_000
"""Partitions at a time, each in some 2 µs."""


class Lag(NamedTuple):
    """The lag in records of the partitions whose end is known; ``None`` if there is none.

    ``unknown``: partitions with an offset whose end is not known. ``lag_ms``: for how long the
    oldest record that is not committed has been there, as far as that is known. ``ahead``:
    partitions whose offset is beyond their end, as after a topic was made anew; that is no lag. An
    end that was reported may be older than the offset.
    """

    records: int | None
    unknown: int = 0
    lag_ms: int | None = None
    ahead: int = 0


def compute_group_lag(topics: Iterable[types_pb2.CommittedTopic]) -> Generator[None, None, Lag]:
    """The lag of a group with these offsets, in slices: there may be a hundred thousand."""
    records, known, unknown, ahead, seen = 0, 0, 0, 0, 0
    lag_ms: int | None = None
    for topic in topics:
        for row in topic.partitions:
            seen += 1
            if seen % SLICE == 0:
                yield
            if not row.HasField("offset"):
                continue
            lag = compute_lag(row)
            if lag is None:
                unknown += 1
                continue
            known += 1
            records += lag
            ahead += row.offset > row.end_offset and not row.is_end_reported
            if row.HasField("lag_ms"):
                lag_ms = max(lag_ms or 0, row.lag_ms)
    return Lag(records if known else None, unknown, lag_ms, ahead)


def render_lag(lag: Lag | None) -> str:
    """``120``, ``at least 120`` if some ends are not known, ``-`` if none is; never a false 0.

    ``…`` as long as nobody has looked.
    """
    if lag is None:
        return "…"
    if lag.records is None or (lag.unknown and not lag.records):
        return "-"
    return f"at least {lag.records}" if lag.unknown else str(lag.records)
