"""Codec of the column family ``causes``, the ledger of rebalances.

The keys of a group are consecutive, in the order in which its rebalances began: an epoch alone
would not do, since a group that is deleted and created again begins anew.
"""

from __future__ import annotations

import struct
from typing import Final

from google.protobuf.message import DecodeError

from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.past.causes import Cause, CauseKind
from model.past.rebalances import HeldUp, HeldUpBy, Rebalance
from storage import causes_pb2
from storage.codec.errors import CodecError

_GROUP_ID_SIZE = struct.Struct(">I")
_PLACE = struct.Struct(">QI")
_STEP_CODES: Final = {
    HeldUpBy.REVOKING: 1,
    HeldUpBy.ACKNOWLEDGING: 2,
    HeldUpBy.JOINING: 3,
    HeldUpBy.ASSIGNING: 4,
}
_STEPS: Final = {code: step for step, code in _STEP_CODES.items()}


def encode_causes_prefix(group_id: GroupId) -> bytes:
    """The key prefix of a group's rebalances."""
    encoded = group_id.encode()
    return _GROUP_ID_SIZE.pack(len(encoded)) + encoded


def encode_causes_key(group_id: GroupId, at_ms: int, epoch: int) -> bytes:
    """The key of the rebalance that began at this time with this epoch.

    With epoch 0 it precedes all that began then.
    """
    return encode_causes_prefix(group_id) + _PLACE.pack(at_ms, epoch)


def decode_causes_key(key: bytes) -> tuple[GroupId, int, int]:
    """The group, the time and the epoch of a key; raises ``CodecError``."""
    try:
        (size,) = _GROUP_ID_SIZE.unpack_from(key)
        at_ms, epoch = _PLACE.unpack(key[_GROUP_ID_SIZE.size + size :])
        return GroupId(key[_GROUP_ID_SIZE.size :][:size].decode()), at_ms, epoch
    except (struct.error, UnicodeDecodeError) as error:
        raise CodecError(f"key {key.hex()} of a rebalance: {error}") from None


def encode_rebalance(rebalance: Rebalance) -> bytes:
    """Encode what the key does not say."""
    cause = rebalance.cause
    return causes_pb2.Rebalance(
        epoch_before=rebalance.epoch_before,
        is_classic=rebalance.is_classic,
        cause=cause.kind.value,
        member_id=cause.member_id,
        client_id=cause.client_id,
        client_host=cause.client_host,
        instance_id=cause.instance_id,
        reason=cause.reason,
        topic=cause.topic_name,
        causes=rebalance.causes,
        heartbeat_age_ms=cause.heartbeat_age_ms,
        moved=rebalance.moved,
        converged_ms=rebalance.converged_ms,
        held_up=[
            causes_pb2.HeldUp(
                member_id=each.member_id,
                client_id=each.client_id,
                step=_STEP_CODES[each.by],
                took_ms=each.took_ms,
            )
            for each in rebalance.held_up
        ],
    ).SerializeToString()


def decode_rebalance(key: bytes, data: bytes) -> Rebalance:
    """Decode a rebalance; raises ``CodecError``."""
    _, at_ms, epoch = decode_causes_key(key)
    try:
        message = causes_pb2.Rebalance.FromString(data)
        return Rebalance(
            at_ms,
            message.epoch_before,
            epoch,
            message.is_classic,
            _decode_cause(message),
            message.causes,
            message.moved if message.HasField("moved") else None,
            message.converged_ms if message.HasField("converged_ms") else None,
            tuple(map(_decode_held_up, message.held_up)),
        )
    except (DecodeError, ValueError, KeyError) as error:
        raise CodecError(f"rebalance {key.hex()}: {error}") from None


def _decode_cause(message: causes_pb2.Rebalance) -> Cause:
    return Cause(
        CauseKind(message.cause),
        MemberId(message.member_id),
        message.client_id,
        message.client_host,
        InstanceId(message.instance_id) if message.HasField("instance_id") else None,
        message.reason,
        TopicName(message.topic),
        message.heartbeat_age_ms if message.HasField("heartbeat_age_ms") else None,
    )


def _decode_held_up(message: causes_pb2.HeldUp) -> HeldUp:
    step = _STEPS[message.step]
    return HeldUp(MemberId(message.member_id), message.client_id, step, message.took_ms)
