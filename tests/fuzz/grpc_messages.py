"""Messages for every RPC, by their descriptors, and bytes that are nearly such messages."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from muster.assignors.names import BUILT_IN_ASSIGNORS
from tests.fuzz.pool import EXTREMES, PATTERNS, STRINGS, TOPICS, Pool
from tests.fuzz.records import ASSIGNMENTS, SUBSCRIPTIONS
from tests.fuzz.wire_bytes import varint

_DEEPEST = 5
_FD = FieldDescriptor
_INT32 = (_FD.TYPE_INT32, _FD.TYPE_SINT32, _FD.TYPE_SFIXED32)
_INT64 = (_FD.TYPE_INT64, _FD.TYPE_SINT64, _FD.TYPE_SFIXED64)
_PLAIN = {_FD.TYPE_STRING: str, _FD.TYPE_BYTES: bytes, _FD.TYPE_BOOL: bool}
_UNSIGNED = {
    _FD.TYPE_UINT32: (0, 1, 2**32 - 1), _FD.TYPE_FIXED32: (0, 1, 2**32 - 1),
    _FD.TYPE_UINT64: (0, 1, 2**64 - 1), _FD.TYPE_FIXED64: (0, 1, 2**64 - 1),
}  # fmt: skip
_CONFIGS = (
    "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "consumer.assignors",
    "consumer.assignor.weights", "consumer.assignor.pins", "consumer.migration.policy",
    "consumer.max.size", "offsets.retention.minutes", "x", "",
)  # fmt: skip
_VALUES = (
    "", "-1", "60000", "45000", "5000", "x", "range", "uniform", "disabled", "bidirectional",
    "orders:0=i0", "orders:0-3=5", "orders=9999999999999", "nan", "9" * 400,
)  # fmt: skip

_BY_NAME: dict[str, Callable[[Pool], Any]] = {
    "group_id": lambda pool: pool.mostly(pool.group_id, *STRINGS, chance=0.93),
    "member_id": lambda pool: pool.mostly(pool.member.member_id, "", *STRINGS, chance=0.9),
    "member_epoch": lambda pool: pool.mostly(pool.member.epoch, 0, -1, -2, 1, 2**31 - 1),
    "generation": lambda pool: pool.mostly(pool.member.epoch, 0, -1, 1, 2**31 - 1),
    "group_epoch": lambda pool: pool.mostly(pool.member.epoch, 0, -1, 1, 2**31 - 1),
    "assignment_id": lambda pool: pool.mostly(pool.member.assignment_id, 0, -1, 2**63 - 1),
    "instance_id": lambda pool: pool.mostly("", "i0", "i1", "z" * 1_025, chance=0.7),
    "client_id": lambda pool: pool.mostly("fuzz", "", *STRINGS),
    "rack_id": lambda pool: pool.mostly("", "r1", "x" * 2_000),
    "topic_name": lambda pool: pool.pick(*TOPICS, f"new-{pool.rng.randrange(4)}"),
    "topic_id": lambda pool: pool.mostly(b"", pool.topic_id(), b"x" * 15, b"x" * 17, chance=0.6),
    "subscribed_topic_names": lambda pool: pool.pick(*TOPICS[:5]),
    "subscribed_topic_regex": lambda pool: pool.mostly("", *PATTERNS, chance=0.6),
    "server_assignor": lambda pool: pool.mostly("", *BUILT_IN_ASSIGNORS, "?"),
    "partition": lambda pool: pool.mostly(pool.rng.randrange(12), -1, 12, 2**31 - 1),
    "partitions": lambda pool: pool.mostly(pool.rng.randrange(12), -1, 12, 2**31 - 1),
    "offset": lambda pool: pool.mostly(pool.rng.randrange(100), -1, -2, 2**63 - 1),
    "leader_epoch": lambda pool: pool.mostly(0, -1, 5, 2**31 - 1, -(2**31)),
    "rebalance_timeout_ms": lambda pool: pool.pick(100, 300, 300, 60_000, 0, -1),
    "session_timeout_ms": lambda pool: pool.pick(300, 1_000, 1_000, 2_000, 0, -1, 2**31 - 1),
    "protocol_type": lambda pool: pool.mostly("consumer", "connect", ""),
    "protocol_name": lambda pool: pool.mostly("range", "roundrobin", ""),
    "join_id": lambda pool: pool.mostly(1, 0, 2, -1, 2**63 - 1, chance=0.7),
    "sequence": lambda pool: pool.mostly(0, 1, 2, -1, 2**63 - 1, chance=0.5),
    "incarnation": lambda pool: pool.mostly(0, 1, -1, 2**63 - 1, chance=0.7),
    "num_partitions": lambda pool: pool.pick(1, 2, 5, -1, 0, 2**31 - 1, 100_001),
    "page_size": lambda pool: pool.mostly(0, 1, -1, 2**31 - 1, 1_001),
    "page_token": lambda pool: pool.mostly("", *STRINGS),
    "request_id": lambda pool: pool.mostly("", f"id-{pool.rng.randrange(3)}", *STRINGS),
    "value": lambda pool: pool.pick(*_VALUES),
    "timestamp_ms": lambda pool: pool.pick(0, -1, 1, 10**13, 2**63 - 1),
    "minimum_version": lambda pool: pool.mostly(0, -1, 1, 2**31 - 1),
    "maximum_version": lambda pool: pool.mostly(1, 0, -1, 2**31 - 1),
    "version": lambda pool: pool.mostly(0, 1, -1, 2**31 - 1),
    "names": lambda pool: pool.pick("r1", "r2", "", "x" * 2_000),
    "leader": lambda pool: pool.member.member_id,
    "metadata": lambda pool: pool.pick("", "m", "x" * 5_000),
    "reason": lambda pool: pool.pick("", "why", "x" * 5_000),
    "folder": lambda pool: pool.pick("", "a", "a/b", "..", "\0", "x" * 5_000),
}


def make_message(pool: Pool, kind: Descriptor, depth: int = 0) -> Any:
    """A message of this type; the pool has chosen who speaks."""
    message: Any = GetMessageClass(kind)()
    chosen = {group: pool.rng.choice(group.fields) for group in kind.oneofs}
    for row in kind.fields:
        if row.containing_oneof is not None:
            if chosen[row.containing_oneof] is not row or pool.rng.random() < 0.1:
                continue
        elif pool.rng.random() < (0.1 if row.name in _BY_NAME else 0.25):
            continue
        _fill(pool, message, row, depth)
    return message


def _fill(pool: Pool, message: Any, row: FieldDescriptor, depth: int) -> None:
    rng = pool.rng
    count = 1
    if row.is_repeated:
        count = rng.choice((0, 1, 1, 2, 3)) if rng.random() < 0.995 else 300
    for _ in range(count):
        if row.message_type is not None:
            if depth >= _DEEPEST:
                return
            inner = make_message(pool, row.message_type, depth + 1)
            if row.is_repeated:
                getattr(message, row.name).append(inner)
            else:
                getattr(message, row.name).CopyFrom(inner)
        elif row.is_repeated:
            getattr(message, row.name).append(_make_value(pool, row))
        else:
            setattr(message, row.name, _make_value(pool, row))


def _make_value(pool: Pool, row: FieldDescriptor) -> Any:
    if row.type == _FD.TYPE_BYTES and row.name != "topic_id":
        return pool.pick(*SUBSCRIPTIONS, *ASSIGNMENTS)
    if row.name == "name":
        holder = row.containing_type
        return _make_name(pool, holder.name if holder is not None else "")
    if row.name in _BY_NAME:
        value = _BY_NAME[row.name](pool)
        if type(value) is _PLAIN.get(row.type, int):
            return value
    if row.type == _FD.TYPE_BOOL:
        return pool.pick(True, False)
    if row.enum_type is not None:
        return pool.pick(0, 1, 2, 3, 99, -1)
    if row.type in _INT32:
        return pool.pick(*EXTREMES[4])
    if row.type in _INT64:
        return pool.pick(*EXTREMES[8])
    if row.type in _UNSIGNED:
        return pool.pick(*_UNSIGNED[row.type])
    return pool.pick(*STRINGS) if row.type == _FD.TYPE_STRING else 0


def _make_name(pool: Pool, kind: str) -> str:
    if kind == "ConfigChange":
        return pool.pick(*_CONFIGS)
    return pool.mostly(pool.pick("range", "roundrobin"), "", "uniform", "x" * 300)


def break_bytes(rng: random.Random, message: Message) -> bytes:
    """The message with something wrong with it, which may still be one."""
    data = bytearray(message.SerializeToString())
    match rng.randrange(7):
        case 0:
            return bytes(data[: rng.randrange(len(data) + 1)])
        case 1:  # an unknown field
            return bytes(data) + varint(2047 << 3 | 2) + varint(1_000) + bytes(1_000)
        case 2:  # a length that is not there
            return bytes(data) + b"\x0a" + varint(rng.choice((2**31 - 1, 2**32 - 1, 100)))
        case 3:  # a field in another wire type
            return bytes(data) + varint(rng.randrange(1, 12) << 3 | rng.randrange(8)) + b"\x01" * 9
        case 4:  # groups in groups
            return b"\x0b" * rng.choice((100, 100_000))
        case 5:  # twice the same
            return bytes(data) * 2
        case _:
            for _ in range(rng.choice((1, 3, 20)) if data else 0):
                data[rng.randrange(len(data))] = rng.randrange(256)
            return bytes(data)
