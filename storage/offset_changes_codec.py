"""Codec of the changes of offsets that are no commits, in the column family ``causes``.

Their keys are behind those of the rebalances: no group id is as long as their first bytes say. The
keys of a group are in the order of the log.
"""

from __future__ import annotations

import struct
from typing import Final

from google.protobuf.message import DecodeError

from model.ids import GroupId, LogOffset
from model.past.offset_changes import OffsetChange, OffsetChangeKind
from storage import causes_pb2
from storage.codec.errors import CodecError

CHANGES_PREFIX: Final = b"\xff\xff\xff\xff"
"""What the keys of all changes begin with."""
_GROUP_ID_SIZE = struct.Struct(">I")
_OFFSET = struct.Struct(">Q")
_KIND_CODES: Final = {
    OffsetChangeKind.RESET: 1,
    OffsetChangeKind.UNDO: 2,
    OffsetChangeKind.GROUP_DELETED: 3,
    OffsetChangeKind.OFFSETS_DELETED: 4,
    OffsetChangeKind.EXPIRED: 5,
}
_KINDS: Final = {code: kind for kind, code in _KIND_CODES.items()}


def encode_changes_prefix(group_id: GroupId) -> bytes:
    """The key prefix of a group's changes."""
    encoded = group_id.encode()
    return CHANGES_PREFIX + _GROUP_ID_SIZE.pack(len(encoded)) + encoded


def encode_change_key(group_id: GroupId, first: int) -> bytes:
    """The key of the change whose first record has this log offset."""
    return encode_changes_prefix(group_id) + _OFFSET.pack(first)


def decode_change_key(key: bytes) -> tuple[GroupId, LogOffset]:
    """The group and the first log offset of a key; raises ``CodecError``."""
    try:
        (size,) = _GROUP_ID_SIZE.unpack_from(key, len(CHANGES_PREFIX))
        rest = key[len(CHANGES_PREFIX) + _GROUP_ID_SIZE.size :]
        (first,) = _OFFSET.unpack(rest[size:])
        return GroupId(rest[:size].decode()), LogOffset(first)
    except (struct.error, UnicodeDecodeError) as error:
        raise CodecError(f"key {key.hex()} of a change of offsets: {error}") from None


def encode_offset_change(change: OffsetChange) -> bytes:
    """Encode what the key does not say."""
    return causes_pb2.OffsetChange(
        kind=_KIND_CODES[change.kind],
        at_ms=change.at_ms,
        principal=change.principal,
        last=change.last,
        offsets=change.offsets,
        undoes=change.undoes,
    ).SerializeToString()


def decode_offset_change(key: bytes, data: bytes) -> OffsetChange:
    """Decode a change; raises ``CodecError``."""
    _, first = decode_change_key(key)
    try:
        message = causes_pb2.OffsetChange.FromString(data)
        return OffsetChange(
            _KINDS[message.kind],
            message.at_ms,
            message.principal,
            first,
            LogOffset(message.last),
            message.offsets,
            LogOffset(message.undoes) if message.HasField("undoes") else None,
        )
    except (DecodeError, KeyError) as error:
        raise CodecError(f"change of offsets {key.hex()}: {error!r}") from None
