"""What `muster timeline` prints: rebalances, and changes of offsets, in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cli.admin.ledger.ledger_listing import (
    COLUMNS,
    WIDE_COLUMNS,
    describe_rebalance,
    make_rebalance_row,
)
from cli.admin.resets.undo_listings import describe_change
from cli.output import Listing
from muster.v1 import explain_pb2, reset_pb2
from wording.times import render_time
from wording.undos import render_change, render_event


@dataclass(frozen=True, slots=True)
class Event:
    """A row, and what JSON has of it."""

    at_ms: int
    row: list[object]
    content: dict[str, Any]


def compute_events(
    group_id: str,
    rebalances: Sequence[explain_pb2.Rebalance],
    changes: Sequence[reset_pb2.OffsetChange],
) -> list[Event]:
    """All of them, the first one first; both are given with the last one first."""
    events = [
        Event(
            each.began_ms,
            make_rebalance_row(group_id, each),
            {"event": "rebalance", **describe_rebalance(each)},
        )
        for each in reversed(rebalances)
    ]
    events += (_make_change(group_id, each) for each in reversed(changes))
    # What began in one millisecond stays in the order of each.
    return sorted(events, key=lambda event: event.at_ms)


def compute_timeline(group_id: str, events: Sequence[Event]) -> Listing:
    """A row for each event."""
    content = {"group_id": group_id, "events": [event.content for event in events]}
    rows = [event.row for event in events]
    return Listing("timeline", COLUMNS, rows, content, "events", WIDE_COLUMNS)


def _make_change(group_id: str, change: reset_pb2.OffsetChange) -> Event:
    event = render_event(change)
    cells: dict[str, object] = {
        "GROUP": group_id,
        "BEGAN": render_time(change.changed_ms),
        "CAUSE": event,
        "REASON": render_change(change),
    }
    row = [cells.get(column) for column in COLUMNS]
    return Event(change.changed_ms, row, {"event": event, **describe_change(change)})
