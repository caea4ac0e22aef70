"""Commands of members of consumer groups, and of their deadlines."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import Final, Literal

from model.caller import Caller
from model.client_assignors import ClientAssignor
from model.configs.assignor_configs import AssignorConfigs
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.log.records import TopicPartitions
from model.value import value


class Unchanged(Enum):
    """``UNCHANGED``, its one value, means that the field keeps its previous value."""

    UNCHANGED = 0


UNCHANGED: Final = Unchanged.UNCHANGED


@value
class ConsumerGroupHeartbeat:
    """KIP-848 heartbeat with a member epoch of 0 or more; epoch 0 joins.

    Epochs below 0 are ``ConsumerGroupLeave``. ``rebalance_timeout_ms``, ``subscribed_topic_names``,
    ``rack_id`` and ``server_assignor`` are ``UNCHANGED`` if the client sent null or -1.
    ``client_assignors`` is ``UNCHANGED`` if the request has no field for client-side assignors; a
    member that joins with such a request has none. ``owned`` is ``None`` if the client does not
    report its partitions. ``wants_assignment``: the previous response may not have reached the
    member, so this one is full. ``keeps_assigned``: in addition, the response starts no revocation,
    so that the member first learns what it owns. ``by_server``: the coordinator repeats a heartbeat
    that it holds back; it reports nothing about the member and does not extend its session.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int
    rebalance_timeout_ms: int | Literal[Unchanged.UNCHANGED] = UNCHANGED
    subscribed_topic_names: tuple[TopicName, ...] | Literal[Unchanged.UNCHANGED] = UNCHANGED
    owned: tuple[TopicPartitions, ...] | None = None
    rack_id: str | Literal[Unchanged.UNCHANGED] = UNCHANGED
    server_assignor: str | Literal[Unchanged.UNCHANGED] = UNCHANGED
    instance_id: InstanceId | None = None
    subscribed_topic_regex: str | Literal[Unchanged.UNCHANGED] = UNCHANGED
    client_assignors: tuple[ClientAssignor, ...] | Literal[Unchanged.UNCHANGED] = UNCHANGED
    wants_assignment: bool = False
    keeps_assigned: bool = False
    by_server: bool = False


@value
class ConsumerGroupLeave:
    """A member leaves: epoch -1, or -2 for a static member that leaves temporarily."""

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    member_epoch: int = -1
    instance_id: InstanceId | None = None


@value
class LeavingMember:
    """A member to remove, by member id or by instance id.

    If both are set, the instance must belong to that member. ``reason`` is the client's (KIP-800).
    ``by_administrator``: somebody else removes it, and is known to.
    """

    member_id: MemberId | None
    instance_id: InstanceId | None = None
    reason: str | None = None
    by_administrator: bool = False


@value
class LeaveGroup:
    """Members leave for good, or an administrator removes them (KIP-345); one result each."""

    caller: Caller
    group_id: GroupId
    members: tuple[LeavingMember, ...]


@value
class ReconcileMember:
    """Move a member as far towards its target as it may go, and answer its heartbeat.

    The continuation of a heartbeat that changed the group. It runs in the same batch, once the
    batch's target assignments are computed. ``before`` is what the member owned when the heartbeat
    arrived, as dense partition numbers of the group; the response carries the assignment if it
    differs from ``before`` or if ``full`` is set. ``epoch_before`` is the epoch that the client
    sent, ``epoch_known`` the member's epoch at that time: if another heartbeat has advanced the
    member since, ``owned`` is outdated and ignored. ``keeps_assigned``: start no revocation.
    ``by_join_group``: the request was a JoinGroup, and gets its response.
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    owned: tuple[TopicPartitions, ...] | None
    full: bool
    has_subscription_changed: bool
    before: tuple[int, ...]
    epoch_before: int
    epoch_known: int
    by_join_group: bool = False
    keeps_assigned: bool = False


class Deadline(Enum):
    """The deadlines of a member of a consumer group."""

    SESSION = "session timeout"
    REBALANCE = "rebalance timeout"


@value
class ExpireMember:
    """A deadline fired: the session timeout, or the rebalance timeout of ``member_epoch``.

    The runtime sends it; the core checks that the deadline still applies. ``silent_ms`` is how long
    nothing had been heard from the member when its session expired; ``has_left``: it was the grace
    period of a member that had left (``consumer.leave.grace.ms``).
    """

    caller: Caller
    group_id: GroupId
    member_id: MemberId
    deadline: Deadline
    member_epoch: int | None = None
    silent_ms: int | None = field(default=None, compare=False)
    has_left: bool = field(default=False, compare=False)


@value
class RefreshTopics:
    """Topics changed: bump the group epoch if the group's metadata hash changed.

    ``topic_name`` is the one that did, if that is known.
    """

    caller: Caller
    group_id: GroupId
    topic_name: TopicName | None = None


@value
class RefreshAssignor:
    """The assignor configs of a group changed: see whether it needs a new target assignment."""

    caller: Caller
    group_id: GroupId
    assignors_before: tuple[str, ...]
    assignor_configs_before: AssignorConfigs
