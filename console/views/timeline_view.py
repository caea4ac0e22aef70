"""The rebalances of a group with their causes, and changes of its offsets, as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from muster.v1 import explain_pb2, reset_pb2
from wording.causes import describe_cause
from wording.times import render_span, render_time
from wording.undos import render_change, render_event

_STEPS: Final = {
    explain_pb2.HELD_UP_STEP_REVOKING: "revoking",
    explain_pb2.HELD_UP_STEP_ACKNOWLEDGING: "acknowledging",
    explain_pb2.HELD_UP_STEP_JOINING: "joining",
    explain_pb2.HELD_UP_STEP_ASSIGNING: "assigning",
}


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One rebalance, or one change of offsets.

    ``before`` and ``after`` are positions at which to look for the group before it, and for how it
    ended, as ``at`` takes them; empty if there was none, or while it goes on.
    """

    key: str
    began: str
    before: str
    after: str
    epochs: str
    kind: str
    cause: str
    moved: str
    ending: str
    held_up: str


def compute_timeline(
    rebalances: Sequence[explain_pb2.Rebalance], changes: Sequence[reset_pb2.OffsetChange] = ()
) -> list[TimelineRow]:
    """A row for each, the last one first, as both come."""
    rows = [(each.began_ms, _compute_row(each)) for each in rebalances]
    rows += ((each.changed_ms, _compute_change(each)) for each in changes)
    # What began in one millisecond stays in the order of each.
    rows.sort(key=lambda row: -row[0])
    return [row for _, row in rows]


def _compute_row(rebalance: explain_pb2.Rebalance) -> TimelineRow:
    goes_on = rebalance.ending == explain_pb2.REBALANCE_ENDING_GOES_ON
    settled_ms = rebalance.ended_ms if rebalance.HasField("ended_ms") else rebalance.began_ms
    return TimelineRow(
        key=f"{rebalance.began_ms}.{rebalance.epoch}",
        began=render_time(rebalance.began_ms),
        before=str(rebalance.began_ms) if was_there_before(rebalance) else "",
        after="" if goes_on else str(settled_ms),
        epochs=f"{rebalance.epoch_before} → {rebalance.epoch}",
        kind=render_cause_name(rebalance.cause),
        cause=describe_cause(rebalance),
        moved=str(rebalance.partitions_moved) if rebalance.HasField("partitions_moved") else "",
        ending=_describe_ending(rebalance),
        # While it goes on, the times grow with each look.
        held_up=", ".join(_render_held_up(each, goes_on) for each in rebalance.held_up),
    )


def _compute_change(change: reset_pb2.OffsetChange) -> TimelineRow:
    is_gone = change.kind == reset_pb2.OFFSET_CHANGE_KIND_GROUP_DELETED
    return TimelineRow(
        key=f"change.{change.log_offset}",
        began=render_time(change.changed_ms),
        before=f"offset:{change.log_offset - 1}" if change.log_offset else "",
        after="" if is_gone else f"offset:{change.last_log_offset}",
        epochs="",
        kind=render_event(change),
        cause=render_change(change),
        moved="",
        ending="" if is_gone else "done",
        held_up="",
    )


def was_there_before(rebalance: explain_pb2.Rebalance) -> bool:
    """Whether there was a group before; that of a new consumer group has epoch 1 for a moment."""
    return rebalance.epoch_before > (0 if rebalance.is_classic else 1)


def _describe_ending(rebalance: explain_pb2.Rebalance) -> str:
    took = render_span(max(rebalance.ended_ms - rebalance.began_ms, 0))
    match rebalance.ending:
        case explain_pb2.REBALANCE_ENDING_CONVERGED:
            return f"converged after {took}"
        case explain_pb2.REBALANCE_ENDING_OVERTAKEN:
            return f"overtaken after {took}"
        case explain_pb2.REBALANCE_ENDING_GOES_ON:
            return "… goes on"
        case _:
            return "not known: the server was restarted"


def _render_held_up(held: explain_pb2.HeldUp, goes_on: bool) -> str:
    client = f" ({held.client_id})" if held.client_id else ""
    step = f", {_STEPS[held.step]}" if held.step in _STEPS else ""
    took = "" if goes_on else f", {render_span(held.took_ms)}"
    return f"{held.member_id}{client}{step}{took}"


def render_cause_name(cause: int) -> str:
    """As the metric `muster_rebalances_total` spells it; a later version may have others."""
    if cause not in explain_pb2.RebalanceCause.values():
        return "unknown"
    return explain_pb2.RebalanceCause.Name(cause).removeprefix("REBALANCE_CAUSE_").lower()
