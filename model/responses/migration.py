"""What blocks the conversion of a group to the other protocol, member by member."""

from __future__ import annotations

from model.ids import GroupId, InstanceId, MemberId
from model.value import value


@value
class MigrationReason:
    """A reason that blocks a conversion or needs care; ``kind`` is for programs."""

    kind: str
    detail: str
    is_blocking: bool


@value
class ClientChange:
    """A client config to change; ``value`` is ``None`` if it is to be removed."""

    name: str
    value: str | None
    reason: str


@value
class PlannedMember:
    """A member that would change its protocol; ``verdict`` is READY, WARN or BLOCKED."""

    member_id: MemberId
    instance_id: InstanceId | None
    client_id: str
    verdict: str
    reasons: tuple[MigrationReason, ...]
    changes: tuple[ClientChange, ...]


@value
class MigrationPlan:
    """How a classic group would convert if a first member of the consumer protocol joined it.

    Of a consumer group, how it would become a classic group again: ``members`` are those of the
    consumer protocol, ``protocol_name`` is its assignor.

    ``group_type`` and ``state`` are in Kafka's spelling. ``reasons`` are those of the group itself.
    """

    group_id: GroupId
    group_type: str
    state: str
    protocol_type: str
    protocol_name: str
    policy: str
    verdict: str
    reasons: tuple[MigrationReason, ...]
    members: tuple[PlannedMember, ...]
