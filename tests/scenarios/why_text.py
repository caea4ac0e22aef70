"""Rebalances and their causes in scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from model.commands.explain import ExplainRebalances
from model.ids import GroupId
from model.past.causes import Cause
from model.past.rebalances import EndedRebalance, Ending
from model.responses.explain import ExplainGroupResponse
from tests.support.virtual.server import CALLER

MANY = 100


def make_why(group: str) -> ExplainRebalances:
    """``why g``."""
    return ExplainRebalances(CALLER, GroupId(group), 0, None, MANY)


def format_why(answer: ExplainGroupResponse, format_ms: Callable[[int], str]) -> list[str]:
    """The rebalances, the first one first."""
    assert not answer.has_more
    return [", ".join(_format(ended, format_ms)) for ended in reversed(answer.rebalances)] or [
        "no rebalances"
    ]


def _format(ended: EndedRebalance, format_ms: Callable[[int], str]) -> Iterator[str]:
    rebalance = ended.rebalance
    kind = "classic " if rebalance.is_classic else ""
    count = f" and {rebalance.causes - 1} more" if rebalance.causes > 1 else ""
    epochs = f"{rebalance.epoch_before}->{rebalance.epoch}"
    yield f"{kind}{epochs}: {rebalance.cause.kind.value}{count}"
    yield from _format_cause(rebalance.cause, format_ms)
    yield "moved unknown" if rebalance.moved is None else f"moved {rebalance.moved}"
    match ended.ending:
        case Ending.CONVERGED | Ending.OVERTAKEN:
            assert ended.ended_ms is not None
            yield f"{ended.ending.value} after {format_ms(ended.ended_ms - rebalance.at_ms)}"
        case _:
            yield ended.ending.value
    for held in rebalance.held_up:
        yield f"{held.member_id} ({held.client_id}) {held.by.value} {format_ms(held.took_ms)}"


def _format_cause(cause: Cause, format_ms: Callable[[int], str]) -> Iterator[str]:
    if cause.member_id:
        instance = "" if cause.instance_id is None else f", instance {cause.instance_id}"
        yield f"{cause.member_id} ({cause.client_id} on {cause.client_host}{instance})"
    if cause.heartbeat_age_ms is not None:
        yield f"silent for {format_ms(cause.heartbeat_age_ms)}"
    if cause.topic_name:
        yield f"topic {cause.topic_name}"
    if cause.reason:
        yield repr(cause.reason)
