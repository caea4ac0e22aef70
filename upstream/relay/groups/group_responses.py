"""What a broker's response to a group's request shows about the member."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gateway.codec.kio_schema import response_type
from model.errors import ErrorCode
from upstream.relay.frames.exchanges import Exchange
from upstream.relay.frames.group_frames import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from upstream.relay.groups.seen_members import SeenMembers

HEAD_BYTES: Final = 16
"""Size, correlation id, no tags, throttle time and error code of a response, and one byte more."""
_FIRST_WITH_THROTTLE: Final = {JOIN_GROUP: 2, HEARTBEAT: 1, SYNC_GROUP: 1, LEAVE_GROUP: 1}


def note_response(
    exchange: Exchange, data: bytes, pos: int, members: SeenMembers, now: float
) -> None:
    """Look at the error code of the response frame at ``pos``, of which the head is there."""
    if exchange.key not in _FIRST_WITH_THROTTLE or not (exchange.member_id or exchange.left):
        return
    at = pos + 8
    if response_type(exchange.key, exchange.version).__header_schema__.__flexible__:
        at += 1
    if exchange.version >= _FIRST_WITH_THROTTLE[exchange.key]:
        at += 4
    code = int.from_bytes(data[at : at + 2], "big", signed=True)
    group_id, member_id = exchange.group_id, exchange.member_id
    if exchange.key == LEAVE_GROUP:
        for left in exchange.left if not code else ():
            members.forget(group_id, left)
        return
    if code == ErrorCode.UNKNOWN_MEMBER_ID or (code and exchange.is_new_member):
        members.forget(group_id, member_id)
    elif code == ErrorCode.NONE and exchange.joining is not None:
        seen = replace(exchange.joining, last_heard_s=now, is_joining=False)
        members.note(group_id, member_id, seen)
    elif code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
        members.hear(group_id, member_id, exchange.client_id, now)
