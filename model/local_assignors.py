"""Client-side assignors under the consumer protocol: what members name, and what was installed.

KIP-848 has them, and Kafka never shipped them: its records have no place for them, so that what
lasts of them is side records.
"""

from __future__ import annotations

from typing import Final

from model.ids import GroupId, LogPartition, MemberId
from model.value import value

CLASSIC_VERSION: Final = -1
"""Of metadata that the coordinator cannot translate: the bytes of members of the classic protocol.

Members that name no assignor have it too, with no bytes.
"""

NO_REASON: Final = 0


@value
class LocalAssignor:
    """An assignor that a member has.

    It understands metadata from ``minimum_version`` to ``maximum_version``. ``metadata``, of
    ``version``, and ``reason`` are for whoever computes; another of either asks for an assignment.
    """

    name: str
    minimum_version: int
    maximum_version: int
    version: int
    metadata: bytes = b""
    reason: int = NO_REASON


@value
class LocalAssignorsKey:
    """What assignors a member has. ``partition`` is the group's in the log."""

    partition: LogPartition
    group_id: GroupId
    member_id: MemberId


@value
class LocalAssignorsValue:
    """In the member's order of preference."""

    assignors: tuple[LocalAssignor, ...]


@value
class InstalledMetadataKey:
    """What an assignor has for a member. ``partition`` is the group's in the log."""

    partition: LogPartition
    group_id: GroupId
    member_id: MemberId


@value
class InstalledMetadataValue:
    """It goes with the target of ``assignment_epoch`` and with no other."""

    assignment_epoch: int
    assignor: str
    version: int
    metadata: bytes
