"""What a change would do to a consumer group: the question, and the answer."""

from __future__ import annotations

from model.configs.assignor_configs import Weight
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.value import value


@value
class WhatIf:
    """Changes that take effect together, under one group epoch.

    ``add`` members join. ``remove`` names members by member id or instance id. ``partitions`` are
    the partition counts that topics grow to. ``assignor`` and ``weights`` take the place of the
    group's configs; ``None`` keeps those. With ``protocol``, a group protocol, all members use that
    one: a classic group is converted, and of classic members ``assignor`` is one of the clients.
    ``resumes`` ends the freeze of a frozen group.
    """

    group_id: GroupId
    add: int = 0
    remove: tuple[str, ...] = ()
    partitions: tuple[tuple[TopicName, int], ...] = ()
    assignor: str | None = None
    weights: tuple[Weight, ...] | None = None
    protocol: str | None = None
    resumes: bool = False


@value
class Move:
    """A partition that gets another owner; ``None`` for no owner."""

    topic_name: TopicName
    partition: int
    source: MemberId | None
    destination: MemberId | None


@value
class Load:
    """How many partitions a member owns before and after; ``None`` while it is not a member."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    before: int | None
    after: int | None


@value
class WhatIfAnswer:
    """``moves`` and ``loads`` are in order of topic and partition, and of member id.

    ``epochs`` is the number of target assignments, ``rounds`` the number of heartbeats that each
    member sends until all own their targets. ``waits_for`` are members that are away (epoch -2) and
    still own partitions of others: the group does not converge before they return or expire.
    ``is_complete`` is false if there is so much to move that the computation ended before.
    """

    group_id: GroupId
    assignor: str
    moves: tuple[Move, ...]
    loads: tuple[Load, ...]
    epochs: int
    rounds: int
    waits_for: tuple[MemberId, ...] = ()
    is_complete: bool = True

    @property
    def idle(self) -> tuple[MemberId, ...]:
        """The members that would own nothing."""
        return tuple(load.member_id for load in self.loads if load.after == 0)
