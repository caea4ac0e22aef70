"""What a request of the Kafka wire is, as quotas see it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from model.ids import GroupId, MemberId
from security.quotas.client_quotas import Work
from security.quotas.holdings import Held

OFFSET_COMMIT: Final = 8
_JOIN_GROUP: Final = 11
_HEARTBEAT: Final = 12
_SYNC_GROUP: Final = 14
_TXN_OFFSET_COMMIT: Final = 28
_CONSUMER_GROUP_HEARTBEAT: Final = 68


def find_work(key: int, request: Any) -> Work:
    """Which rates a decoded request counts for."""
    if key in (OFFSET_COMMIT, _TXN_OFFSET_COMMIT):
        return Work.COMMIT
    if key == _JOIN_GROUP or (key == _CONSUMER_GROUP_HEARTBEAT and request.member_epoch == 0):
        return Work.JOIN
    return Work.REQUEST


class Spoken(NamedTuple):
    """What a request is about; ``may_make``: it may make that group or member."""

    held: Held
    may_make: bool


def find_held(key: int, request: Any) -> Spoken | None:
    """The group that a request commits to, or the member that it speaks for."""
    if key in (OFFSET_COMMIT, _TXN_OFFSET_COMMIT):
        return Spoken(Held(GroupId(request.group_id), None), True)
    if key in (_JOIN_GROUP, _HEARTBEAT, _SYNC_GROUP):
        return Spoken(_make_member(request), key == _JOIN_GROUP)
    if key == _CONSUMER_GROUP_HEARTBEAT and request.member_epoch >= 0:
        return Spoken(_make_member(request), request.member_epoch == 0)
    return None


def _make_member(request: Any) -> Held:
    return Held(GroupId(request.group_id), MemberId(request.member_id))
