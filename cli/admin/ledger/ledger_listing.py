"""What `muster why` prints, and rows of rebalances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from cli.log.as_of_option import read_wall_ms
from cli.output import Listing
from muster.v1 import explain_pb2
from wording.causes import describe_cause
from wording.times import render_span, render_time

COLUMNS: Final = (
    "GROUP", "BEGAN", "EPOCH", "CAUSE", "CONSUMER-ID", "HOST", "CLIENT-ID", "HEARTBEAT-AGE",
    "MOVED", "TOOK", "HELD-UP-BY", "GROUP-INSTANCE-ID", "TOPIC", "CAUSES", "REASON",
)  # fmt: skip
WIDE_COLUMNS: Final = 4
_STEPS: Final = {
    explain_pb2.HELD_UP_STEP_REVOKING: "revoking",
    explain_pb2.HELD_UP_STEP_ACKNOWLEDGING: "acknowledging",
    explain_pb2.HELD_UP_STEP_JOINING: "joining",
    explain_pb2.HELD_UP_STEP_ASSIGNING: "assigning",
}
_ENDINGS: Final = {
    explain_pb2.REBALANCE_ENDING_CONVERGED: "converged",
    explain_pb2.REBALANCE_ENDING_OVERTAKEN: "overtaken",
    explain_pb2.REBALANCE_ENDING_GOES_ON: "goes on",
    explain_pb2.REBALANCE_ENDING_UNREADABLE: "unreadable",
}


def compute_why(group_id: str, rebalances: Sequence[explain_pb2.Rebalance]) -> Listing:
    """A row for each rebalance; the last one, the first of them, is told in words."""
    content = {
        "group_id": group_id,
        "rebalances": [describe_rebalance(each) for each in rebalances],
    }
    rows = [make_rebalance_row(group_id, each) for each in rebalances]
    preface = tell(rebalances[0], read_wall_ms()) if rebalances else [_tell_nothing(group_id)]
    return Listing("why", COLUMNS, rows, content, "rebalances", WIDE_COLUMNS, preface)


def tell(rebalance: explain_pb2.Rebalance, now_ms: int) -> list[str]:
    """A rebalance in words: the cause, and how it went on."""
    ago = render_span(max(now_ms - rebalance.began_ms, 0))
    lines = [f"{ago} ago: {describe_cause(rebalance)}"]
    if rebalance.ending == explain_pb2.REBALANCE_ENDING_UNREADABLE:
        return lines
    parts = []
    if rebalance.HasField("partitions_moved"):
        moved = rebalance.partitions_moved
        parts.append("1 partition moved" if moved == 1 else f"{moved} partitions moved")
    took_ms = rebalance.ended_ms - rebalance.began_ms
    match rebalance.ending:
        case explain_pb2.REBALANCE_ENDING_CONVERGED:
            parts.append(f"converged after {render_span(took_ms)}")
        case explain_pb2.REBALANCE_ENDING_OVERTAKEN:
            parts.append(f"the next one began {render_span(took_ms)} later")
        case explain_pb2.REBALANCE_ENDING_GOES_ON:
            parts.append("it goes on")
        case _:
            parts.append("how it ended is not known: the server was restarted")
    lines.append("; ".join(parts))
    goes_on = rebalance.ending == explain_pb2.REBALANCE_ENDING_GOES_ON
    says = "waiting for" if goes_on else "waited for"
    if rebalance.held_up:
        lines.append(f"{says} {', '.join(_render_held_up(each) for each in rebalance.held_up)}")
    return lines


def _tell_nothing(group_id: str) -> str:
    return f"{group_id}: no rebalance is known in that time"


def make_rebalance_row(group_id: str, rebalance: explain_pb2.Rebalance) -> list[object]:
    """What the columns have of a rebalance."""
    slowest = rebalance.held_up[0] if rebalance.held_up else None
    return [
        group_id,
        render_time(rebalance.began_ms),
        f"{rebalance.epoch_before}->{rebalance.epoch}",
        render_cause(rebalance.cause),
        rebalance.member_id,
        rebalance.client_host,
        rebalance.client_id,
        render_span(rebalance.heartbeat_age_ms) if rebalance.HasField("heartbeat_age_ms") else None,
        rebalance.partitions_moved if rebalance.HasField("partitions_moved") else None,
        _render_took(rebalance),
        None if slowest is None else slowest.member_id,
        rebalance.instance_id,
        rebalance.topic_name,
        rebalance.causes,
        rebalance.reason,
    ]


def _render_took(rebalance: explain_pb2.Rebalance) -> str | None:
    match rebalance.ending:
        case explain_pb2.REBALANCE_ENDING_CONVERGED:
            return render_span(rebalance.ended_ms - rebalance.began_ms)
        case _:
            return _ENDINGS.get(rebalance.ending)


def _render_held_up(held: explain_pb2.HeldUp) -> str:
    client = f" (client {held.client_id})" if held.client_id else ""
    step = _STEPS.get(held.step)
    return f"{held.member_id}{client}{f', {step}' if step else ''}, {render_span(held.took_ms)}"


def render_cause(cause: int) -> str:
    """As the metric `muster_rebalances_total` spells it; a later version may have others."""
    if cause not in explain_pb2.RebalanceCause.values():
        return "unknown"
    return explain_pb2.RebalanceCause.Name(cause).removeprefix("REBALANCE_CAUSE_").lower()


def describe_rebalance(rebalance: explain_pb2.Rebalance) -> dict[str, Any]:
    """A rebalance as JSON has it."""

    def optional(name: str) -> Any:
        return getattr(rebalance, name) if rebalance.HasField(name) else None

    return {
        "began_ms": rebalance.began_ms,
        "epoch_before": rebalance.epoch_before,
        "epoch": rebalance.epoch,
        "group_type": "classic" if rebalance.is_classic else "consumer",
        "cause": render_cause(rebalance.cause),
        "causes": rebalance.causes,
        "member_id": rebalance.member_id or None,
        "client_id": rebalance.client_id or None,
        "client_host": rebalance.client_host or None,
        "instance_id": rebalance.instance_id or None,
        "reason": rebalance.reason or None,
        "topic": rebalance.topic_name or None,
        "heartbeat_age_ms": optional("heartbeat_age_ms"),
        "partitions_moved": optional("partitions_moved"),
        "ending": _ENDINGS.get(rebalance.ending, "unknown").replace(" ", "_"),
        "ended_ms": optional("ended_ms"),
        "held_up": [
            {
                "member_id": each.member_id,
                "client_id": each.client_id or None,
                "step": _STEPS.get(each.step, "unknown"),
                "took_ms": each.took_ms,
            }
            for each in rebalance.held_up
        ],
    }
