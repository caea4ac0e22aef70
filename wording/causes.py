"""Causes of rebalances in words."""

from __future__ import annotations

from typing import Final

from muster.v1 import explain_pb2
from wording.times import render_span

_E: Final = explain_pb2
_OF_MEMBERS: Final = {
    _E.REBALANCE_CAUSE_MEMBER_JOINED: "joined",
    _E.REBALANCE_CAUSE_MEMBER_LEFT: "left",
    _E.REBALANCE_CAUSE_SESSION_EXPIRED: "was not heard for its session timeout",
    _E.REBALANCE_CAUSE_REBALANCE_TIMEOUT: "did not do its part within its rebalance timeout",
    _E.REBALANCE_CAUSE_SUBSCRIPTION_CHANGED: "changed its subscription",
    _E.REBALANCE_CAUSE_LEADER_REJOINED: "joined again, as the leader that saw topics change",
    _E.REBALANCE_CAUSE_ASSIGNMENT_FAILED: "could not assign, as the leader",
}
_OF_GROUPS: Final = {
    _E.REBALANCE_CAUSE_REGEX_RESOLVED: "a regular expression matches other topics",
    _E.REBALANCE_CAUSE_TOPIC_CREATED: "topic {topic} was created",
    _E.REBALANCE_CAUSE_TOPIC_DELETED: "topic {topic} was deleted",
    _E.REBALANCE_CAUSE_PARTITIONS_ADDED: "topic {topic} got more partitions",
    _E.REBALANCE_CAUSE_RACKS_CHANGED: "replicas of partitions are in other racks",
    _E.REBALANCE_CAUSE_ASSIGNOR_CHANGED: "the group has another assignor",
    _E.REBALANCE_CAUSE_CONFIGS_CHANGED: "configs of the group's assignor were changed",
    _E.REBALANCE_CAUSE_NEXT_MOVES: "the move budget allowed the next moves",
    _E.REBALANCE_CAUSE_MIGRATED: "the group was migrated",
    _E.REBALANCE_CAUSE_ADMINISTRATOR: "an administrator asked for it",
}


def describe_cause(rebalance: explain_pb2.Rebalance) -> str:
    """What happened, by whom, and what the client said."""
    if rebalance.ending == explain_pb2.REBALANCE_ENDING_UNREADABLE:
        return f"epoch {rebalance.epoch} began; its entry in the ledger cannot be read"
    said = _OF_MEMBERS.get(rebalance.cause)
    if said is not None:
        text = f"{_render_member(rebalance)} {said}"
    else:
        text = _OF_GROUPS.get(rebalance.cause, "the cause is not known to this version")
        if rebalance.cause == _E.REBALANCE_CAUSE_TOPIC_DELETED and not rebalance.topic_name:
            # Nobody may know its name, either.
            text = "a topic was deleted"
        text = text.format(topic=rebalance.topic_name or "of a name that you may not see")
        if rebalance.member_id:
            text += f" ({_render_member(rebalance)})"
    if rebalance.causes > 1:
        text += f", and {rebalance.causes - 1} more"
    if rebalance.HasField("heartbeat_age_ms"):
        text += f", {render_span(rebalance.heartbeat_age_ms)} after it was last heard"
    if rebalance.reason:
        text += f": {rebalance.reason}"
    return text


def _render_member(rebalance: explain_pb2.Rebalance) -> str:
    about = [
        f"{name} {value}"
        for name, value in (
            ("client", rebalance.client_id),
            ("instance", rebalance.instance_id),
            ("host", rebalance.client_host),
        )
        if value
    ]
    who = f"member {rebalance.member_id}"
    return f"{who} ({', '.join(about)})" if about else who
