"""Client-side assignors of the consumer protocol: what members support and what was installed.

KIP-848 describes them but Kafka never shipped them. Kafka's records have no fields for them, so
their durable state is in side records.
"""

from __future__ import annotations

from typing import Final

from model.ids import GroupId, LogPartition, MemberId
from model.value import value

CLASSIC_VERSION: Final = -1
"""The version of metadata that the coordinator cannot interpret: that of classic members.

Members that name no assignor have this version too, with empty metadata.
"""

NO_REASON: Final = 0


@value
class ClientAssignor:
    """A client-side assignor that a member supports.

    It reads metadata of versions ``minimum_version`` to ``maximum_version``. ``metadata``, which
    has ``version``, and ``reason`` are input for the member that computes the assignment; a change
    of either triggers a new assignment.
    """

    name: str
    minimum_version: int
    maximum_version: int
    version: int
    metadata: bytes = b""
    reason: int = NO_REASON


@value
class ClientAssignorsKey:
    """The client-side assignors of a member. ``partition`` is the group's log partition."""

    partition: LogPartition
    group_id: GroupId
    member_id: MemberId


@value
class ClientAssignorsValue:
    """Client-side assignors in the member's order of preference."""

    assignors: tuple[ClientAssignor, ...]


@value
class InstalledMetadataKey:
    """The assignor's metadata for a member. ``partition`` is the group's log partition."""

    partition: LogPartition
    group_id: GroupId
    member_id: MemberId


@value
class InstalledMetadataValue:
    """Valid only with the target assignment of ``assignment_epoch``."""

    assignment_epoch: int
    assignor: str
    version: int
    metadata: bytes
