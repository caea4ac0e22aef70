"""Muster for Python: members of consumer groups, over gRPC.

    async with muster.Member("127.0.0.1:50051", "group", topics=["orders"]) as member:
        async for partitions in member.changes():
            ...

`ClassicMember` and `ClassicWorker` are members of classic groups; they need ``muster[classic]``.
``muster.v1`` has the generated stubs, ``muster.assignors`` the assignors of the server.
"""

from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

__version__ = "0.1.0"
"""The version of the SDK and of the server: both builds read it here."""

if TYPE_CHECKING:
    from muster.classic.classic_member import ClassicMember
    from muster.classic.classic_protocol import AssignmentFailed, Generation
    from muster.classic.classic_worker import ClassicWorker
    from muster.client_assignor import (
        Assignor,
        Group,
        GroupMember,
        GroupTopic,
        MemberAssignment,
        Metadata,
    )
    from muster.connection.client import Client
    from muster.credentials import Basic, Bearer, Tls, Token
    from muster.errors import (
        AuthenticationFailed,
        CallbackFailed,
        CommitFailed,
        JoinRefused,
        JoinTimeout,
        MemberLost,
        MusterError,
        PollIntervalExceeded,
        ReportFailed,
    )
    from muster.member import Member
    from muster.partitions import OffsetAndMetadata, TopicPartition

_MODULES: Final = MappingProxyType(
    {
        "AssignmentFailed": "muster.classic.classic_protocol",
        "Assignor": "muster.client_assignor",
        "AuthenticationFailed": "muster.errors",
        "Basic": "muster.credentials",
        "Bearer": "muster.credentials",
        "CallbackFailed": "muster.errors",
        "ClassicMember": "muster.classic.classic_member",
        "ClassicWorker": "muster.classic.classic_worker",
        "Client": "muster.connection.client",
        "CommitFailed": "muster.errors",
        "Generation": "muster.classic.classic_protocol",
        "Group": "muster.client_assignor",
        "GroupMember": "muster.client_assignor",
        "GroupTopic": "muster.client_assignor",
        "JoinRefused": "muster.errors",
        "JoinTimeout": "muster.errors",
        "Member": "muster.member",
        "MemberAssignment": "muster.client_assignor",
        "MemberLost": "muster.errors",
        "Metadata": "muster.client_assignor",
        "MusterError": "muster.errors",
        "OffsetAndMetadata": "muster.partitions",
        "PollIntervalExceeded": "muster.errors",
        "ReportFailed": "muster.errors",
        "Tls": "muster.credentials",
        "Token": "muster.credentials",
        "TopicPartition": "muster.partitions",
    }
)
"""The module of each name, imported on first use.

So the server and the executors of its pipeline can import ``muster.assignors`` without gRPC, and
members of consumer groups work without numpy, which only classic groups need.
"""


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name == "numpy":
            raise ImportError(f"muster.{name} needs numpy: install muster[classic]") from error
        raise
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "AssignmentFailed",
    "Assignor",
    "AuthenticationFailed",
    "Basic",
    "Bearer",
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
    "ReportFailed",
    "Tls",
    "Token",
    "TopicPartition",
]
