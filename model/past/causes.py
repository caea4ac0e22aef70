"""Why a group rebalances: the cause of a new group epoch."""

from __future__ import annotations

from enum import Enum

from model.ids import InstanceId, MemberId, TopicName
from model.value import value


class CauseKind(Enum):
    """What happened."""

    MEMBER_JOINED = "member_joined"
    MEMBER_LEFT = "member_left"
    SESSION_EXPIRED = "session_expired"
    REBALANCE_TIMEOUT = "rebalance_timeout"
    SUBSCRIPTION_CHANGED = "subscription_changed"
    LEADER_REJOINED = "leader_rejoined"
    """Of a classic group: its topics or their partitions changed, as its leader sees them."""
    ASSIGNMENT_FAILED = "assignment_failed"
    """The assignor of the leader of a classic group failed."""
    REGEX_RESOLVED = "regex_resolved"
    TOPIC_CREATED = "topic_created"
    TOPIC_DELETED = "topic_deleted"
    PARTITIONS_ADDED = "partitions_added"
    RACKS_CHANGED = "racks_changed"
    ASSIGNOR_CHANGED = "assignor_changed"
    CONFIGS_CHANGED = "configs_changed"
    """Those of the assignor: pins, weights and the like."""
    NEXT_MOVES = "next_moves"
    """The members have converged, and the move budget allows more partitions to move."""
    MIGRATED = "migrated"
    ADMINISTRATOR = "administrator"
    """Somebody who is no member asked for it; the reason says who and what."""


@value
class Cause:
    """What happened, and whose doing it was; "" for what does not apply or is not known.

    ``reason`` is what the client said (KIP-800), or the regular expression. ``topic_name`` is the
    first of the topics concerned. ``heartbeat_age_ms`` is how long nothing had been heard from the
    member; ``None`` if it has just joined, or was no member.
    """

    kind: CauseKind
    member_id: MemberId = MemberId("")
    client_id: str = ""
    client_host: str = ""
    instance_id: InstanceId | None = None
    reason: str = ""
    topic_name: TopicName = TopicName("")
    heartbeat_age_ms: int | None = None
