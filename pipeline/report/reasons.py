"""Explains in words why a group is among the worst."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.report.figures import UNKNOWN_CAUSE, BusyGroup
from pipeline.report.scales import show_duration

CAUSE_WORDS: Mapping[str, str] = {
    "member_joined": "a member joined",
    "member_left": "a member left or timed out",
    "session_expired": "a member's session expired",
    "rebalance_timeout": "a member was too slow to rebalance",
    "administrator": "an administrator removed a member",
    "subscription_changed": "a subscription changed",
    "assignor_changed": "the assignor changed",
    "topics_changed": "topics changed",
    "protocol_changed": "the protocol changed",
    UNKNOWN_CAUSE: "cause not in the records",
}
_DEPARTURES = ("member_left", "session_expired", "rebalance_timeout", "administrator")
_MOSTLY = 0.6
_BOTH = 0.25
_SLOW = 5
_LEAST = 3


def explain_busy(group: BusyGroup, usual_ms: int | None) -> str:
    """What is unusual about its rebalances; ``usual_ms`` is the median of all groups."""
    found = [_explain_causes(group)]
    named = group.worst_member_causes
    if group.worst_member is not None and named >= max(_LEAST, group.rebalances / 2):
        found.append(f"{group.worst_member.name} alone caused {named:,} of them")
    if group.never:
        found.append(f"{group.never:,} never converged")
    if usual_ms and group.p50_ms is not None and group.p50_ms >= _SLOW * usual_ms:
        times = round(group.p50_ms / usual_ms)
        found.append(f"the median is {show_duration(group.p50_ms)}, {times}× the usual")
    text = "; ".join(part for part in found if part)
    return text[:1].upper() + text[1:]


def _explain_causes(group: BusyGroup) -> str:
    counts = sorted(group.causes.items(), key=lambda item: (-item[1], item[0]))
    if not counts:
        return ""
    total = sum(group.causes.values())
    joined = group.causes.get("member_joined", 0)
    left = sum(group.causes.get(cause, 0) for cause in _DEPARTURES)
    if min(joined, left) >= _BOTH * total:
        return f"members come and go ({joined:,} joined, {left:,} left or timed out)"
    cause, count = counts[0]
    words = CAUSE_WORDS.get(cause, cause)
    if count == total:
        return f"always: {words}"
    if count >= _MOSTLY * total:
        return f"mostly: {words} ({count:,} of {total:,})"
    return ", ".join(f"{CAUSE_WORDS.get(name, name)} ({n:,})" for name, n in counts[:3])
