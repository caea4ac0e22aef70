"""Muster for Python: members of consumer groups, over gRPC.

    async with muster.Member("127.0.0.1:50051", "group", topics=["orders"]) as member:
        async for partitions in member.changes():
            ...

``muster.v1`` has the generated stubs.
"""

from muster.client import Client
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

__all__ = [
    "CallbackFailed",
    "Client",
    "CommitFailed",
    "JoinRefused",
    "JoinTimeout",
    "Member",
    "MemberLost",
    "MusterError",
    "OffsetAndMetadata",
    "PollIntervalExceeded",
    "TopicPartition",
]
