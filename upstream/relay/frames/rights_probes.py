"""Whether a client may read a group, as the broker sees it on the client's own connection.

A relay knows nobody: the login passes it by. So before a client makes Muster do something to a
group, the broker is asked for a Heartbeat of nobody in that group. It is refused to who may not
read the group, and changes nothing. A client that has not logged in is closed by the broker.
"""

from __future__ import annotations

import struct
from typing import Final

from gateway.rewriting.naming import CannotRewrite
from model.errors import ErrorCode
from upstream.relay.frames.group_frames import HEARTBEAT, GroupFrame

_VERSION: Final = 0
"""All brokers serve it, and it has no more fields than are needed."""
_HEAD: Final = struct.Struct(">hhi")
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_CLIENT_ID_AT: Final = 12
_NO_GENERATION: Final = -1
_CODE: Final = slice(8, 10)
_ANSWER_BYTES: Final = 10

SHOWS_RIGHTS: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.REBALANCE_IN_PROGRESS,
    }
)
"""What is only said to a client that may read the group."""


def make_rights_probe(request: GroupFrame) -> bytes:
    """A Heartbeat of no member, in place of the request of one group."""
    head = request.head
    client_id_ends = _CLIENT_ID_AT + _INT16.size + max(head.client_id_bytes, 0)
    rest = b"".join(
        (
            _HEAD.pack(HEARTBEAT, _VERSION, head.correlation_id),
            request.frame[_CLIENT_ID_AT:client_id_ends],
            _text(request.body.group_id),
            _INT32.pack(_NO_GENERATION),
            _text(""),
        )
    )
    return _INT32.pack(len(rest)) + rest


def _text(value: str) -> bytes:
    encoded = value.encode()
    return _INT16.pack(len(encoded)) + encoded


def read_probe(frame: bytes) -> ErrorCode:
    """The error code of the answer; raises ``CannotRewrite``."""
    if len(frame) < _ANSWER_BYTES:
        raise CannotRewrite("an answer to Heartbeat is cut short")
    try:
        return ErrorCode(int.from_bytes(frame[_CODE], "big", signed=True))
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
