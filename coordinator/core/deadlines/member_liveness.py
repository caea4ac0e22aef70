"""The liveness of one member: its session, its lease, and its rebalance deadline."""

from __future__ import annotations

import sys
from typing import NamedTuple

from model.ids import GroupId, MemberId

NOT_HEARD_MS = -1
"""``last_heard_ms`` of a member that was not heard from since its group's timeout changed. It is a
marker because times cannot tell: the clock barely moves while the process is starved of CPU.
"""


class RebalanceDeadline(NamedTuple):
    """The time by which a member must have left an epoch; ``bucket`` examines it."""

    at_ms: int
    epoch: int
    bucket: int


class Reservation(NamedTuple):
    """The grace period of a member that has gone: when it ends, and whether the member had left.

    The session of others had expired.
    """

    until_ms: int
    has_left: bool


class MemberLiveness:
    """The liveness of one member. Times are on the clock of ``Liveness``.

    There may be very many: they share objects where possible (the group id, the number of a
    bucket, the time of a heartbeat).
    """

    __slots__ = (
        "group_id",
        "is_gone",
        "kept_since_ms",
        "kept_until_ms",
        "last_heard_ms",
        "lease_ms",
        "member_id",
        "must_go",
        "promised_until_ms",
        "rebalance",
        "reservation",
        "session_bucket",
        "told_again",
    )

    def __init__(self, group_id: GroupId, member_id: MemberId, now_ms: int) -> None:
        self.group_id = GroupId(sys.intern(group_id))
        self.member_id = member_id
        self.last_heard_ms = now_ms
        self.lease_ms = 0
        self.kept_since_ms = 0
        self.kept_until_ms = 0
        self.promised_until_ms = 0
        self.reservation: Reservation | None = None
        self.must_go = False
        self.rebalance: RebalanceDeadline | None = None
        self.session_bucket = -1
        self.is_gone = False
        self.told_again = 0


def compute_heard_ms(entry: MemberLiveness) -> int:
    """The last time that the member was heard from."""
    return entry.kept_since_ms if entry.last_heard_ms == NOT_HEARD_MS else entry.last_heard_ms


def compute_lease_end_ms(entry: MemberLiveness) -> int:
    """When the member's lease ends; in the past if it has none."""
    end_ms = compute_heard_ms(entry) + entry.lease_ms if entry.lease_ms else 0
    return max(end_ms, entry.promised_until_ms)
