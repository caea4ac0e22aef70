"""Muster for Python: members of consumer groups, over gRPC.

    async with muster.Member("127.0.0.1:50051", "group", topics=["orders"]) as member:
        async for partitions in member.changes():
            ...

`ClassicMember` and `ClassicWorker` are members of classic groups. ``muster.v1`` has the generated
stubs.
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from muster.assignor import (
    Assignor,
    Group,
    GroupMember,
    GroupTopic,
    MemberAssignment,
    Metadata,
)
from muster.connection.client import Client
from muster.errors import (
    CallbackFailed,
    CommitFailed,
    JoinRefused,
    JoinTimeout,
    MemberLost,
    MusterError,
    PollIntervalExceeded,
)
from muster.member import Member
from muster.partitions import OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from muster.classic.classic_member import ClassicMember, ClassicWorker
    from muster.classic.classic_protocol import AssignmentFailed, Generation

_CLASSIC: Final = MappingProxyType(
    {
        "AssignmentFailed": "muster.classic.classic_protocol",
        "ClassicMember": "muster.classic.classic_member",
        "ClassicWorker": "muster.classic.classic_member",
        "Generation": "muster.classic.classic_protocol",
    }
)
"""Imported when they are asked for: who leads a classic group needs numpy, and others do not."""


def __getattr__(name: str) -> Any:
    module = _CLASSIC.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


__all__ = [
    "AssignmentFailed",
    "Assignor",
    "CallbackFailed",
    "ClassicMember",
    "ClassicWorker",
    "Client",
    "CommitFailed",
    "Generation",
    "Group",
    "GroupMember",
    "GroupTopic",
    "JoinRefused",
    "JoinTimeout",
    "Member",
    "MemberAssignment",
    "MemberLost",
    "Metadata",
    "MusterError",
    "OffsetAndMetadata",
    "PollIntervalExceeded",
    "TopicPartition",
]
