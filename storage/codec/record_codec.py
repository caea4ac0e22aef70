"""Codec of coordinator record keys and values.

A key begins with its type (int16), a value with its version (int16). Unknown types and versions
decode to ``UnknownKey`` and ``UnknownValue``, which hold all their bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from model.ids import GroupId, MemberId
from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    RecordKey,
    RecordType,
    RecordValue,
    UnknownKey,
    UnknownValue,
)
from storage.codec import hot, wire
from storage.codec.errors import CodecError, TruncatedError
from storage.codec.foreign_schemas import FOREIGN_SCHEMAS
from storage.codec.kinds import Compiled
from storage.codec.record_schemas import RECORD_SCHEMAS, RecordSchema
from storage.codec.wire import INT16

_SCHEMAS: dict[int, RecordSchema] = {**RECORD_SCHEMAS, **FOREIGN_SCHEMAS}
_KEYS: dict[int, Compiled] = {
    type_id: schema.key.compile(0) for type_id, schema in _SCHEMAS.items()
}
_KEY_WRITERS = {
    schema.key.cls: (INT16.pack(type_id), _KEYS[type_id].write)
    for type_id, schema in _SCHEMAS.items()
}
_VALUES: dict[int, tuple[Compiled, ...]] = {
    type_id: tuple(schema.value.compile(v) for v in range(schema.max_version + 1))
    for type_id, schema in _SCHEMAS.items()
}
_VALUE_TYPES = {schema.value.cls: type_id for type_id, schema in _SCHEMAS.items()}
_GROUP_METADATA_VERSION = 3
_HOT_DECODERS: dict[tuple[int, int], Callable[[bytes], RecordValue | None]] = {
    (RecordType.OFFSET_COMMIT, 4): hot.decode_offset_value,
    (RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, 0): hot.decode_target_value,
    (RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, 0): hot.decode_current_value,
}

_MEMBER_KEYS: dict[int, Callable[[GroupId, MemberId], RecordKey]] = {
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: ConsumerGroupMemberMetadataKey,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: ConsumerGroupTargetAssignmentMemberKey,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: ConsumerGroupCurrentMemberAssignmentKey,
}


def read_type(data: bytes) -> int:
    """Read the record type at the start of a key."""
    if len(data) < 2:
        raise TruncatedError(f"a record key has at least 2 bytes, not {len(data)}")
    return cast(int, INT16.unpack_from(data)[0])


def read_version(data: bytes) -> int:
    """Read the version at the start of a value."""
    if len(data) < 2:
        raise TruncatedError(f"a record value has at least 2 bytes, not {len(data)}")
    return cast(int, INT16.unpack_from(data)[0])


# ---------------------------------------------------------------------------------------- keys


def encode_key(key: RecordKey) -> bytes:
    """Encode a key; raises ``CodecError`` if a field is out of range."""
    try:
        if type(key) is OffsetCommitKey:
            return hot.encode_offset_key(key)
        if type(key) is UnknownKey:
            return key.data
        prefix, write = _KEY_WRITERS[type(key)]
        out = bytearray(prefix)
        write(out, key)
    except wire.BAD_INPUT as error:
        raise wire.compute_codec_error(type(key).__name__, error) from None
    return bytes(out)


def decode_key(data: bytes) -> RecordKey:
    """Decode a key; types that Kafka 4.3 does not have give an ``UnknownKey``."""
    type_id = read_type(data)
    compiled = _KEYS.get(type_id)
    if compiled is None:
        return UnknownKey(type_id, data)
    try:
        make = _MEMBER_KEYS.get(type_id)
        if make is not None and (names := hot.decode_member_key(data)) is not None:
            return make(GroupId(names[0]), MemberId(names[1]))
        key, end = compiled.read(data, 2)
    except wire.BAD_INPUT as error:
        raise wire.compute_codec_error(f"key of {RecordType(type_id).name}", error) from None
    if end != len(data):
        raise CodecError(f"key of {RecordType(type_id).name}: {len(data) - end} bytes too many")
    return cast(RecordKey, key)


# -------------------------------------------------------------------------------------- values


def encode_value(value: RecordValue, version: int | None = None) -> bytes:
    """Encode a value in a version, by default the version that Kafka 4.3 writes.

    Fields that the version lacks are omitted. Raises ``CodecError`` if a field is out of range or
    the version does not exist.
    """
    try:
        encoded = _encode_hot(value, version)
    except wire.BAD_INPUT as error:
        raise wire.compute_codec_error(type(value).__name__, error) from None
    if encoded is not None:
        return encoded
    type_id = _VALUE_TYPES[type(value)]
    if version is None:
        version = compute_version(value)
    versions = _VALUES[type_id]
    if not 0 <= version < len(versions):
        raise CodecError(f"{type(value).__name__} has no version {version}")
    out = bytearray(INT16.pack(version))
    try:
        versions[version].write(out, value)
    except wire.BAD_INPUT as error:
        raise wire.compute_codec_error(type(value).__name__, error) from None
    return bytes(out)


def _encode_hot(value: RecordValue, version: int | None) -> bytes | None:
    if isinstance(value, OffsetCommitValue):
        if version == 4 or (version is None and value.expire_timestamp == -1):
            return hot.encode_offset_value(value)
    elif isinstance(value, UnknownValue):
        return value.data
    elif isinstance(value, GroupMetadataValue):
        if version in (None, _GROUP_METADATA_VERSION):
            return hot.encode_group_value(value)
    elif not version:
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            return hot.encode_current_value(value)
        if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
            return hot.encode_target_value(value)
    return None


def compute_version(value: RecordValue) -> int:
    """The version in which Kafka 4.3 writes a value (``GroupCoordinatorRecordHelpers``).

    An offset commit with an expire timestamp is v1, the only version with that field. Group
    metadata stays at v3 so that older brokers can read it.
    """
    match type_id := _VALUE_TYPES.get(type(value)):
        case RecordType.OFFSET_COMMIT:
            expires = cast(OffsetCommitValue, value).expire_timestamp != -1
            return 1 if expires else 4
        case RecordType.GROUP_METADATA:
            return _GROUP_METADATA_VERSION
        case None:
            raise CodecError(f"{type(value).__name__} has no version of its own")
        case _:
            return _SCHEMAS[type_id].max_version


def decode_value(key_type: int, data: bytes) -> tuple[int, RecordValue]:
    """Decode a value and its version; unknown types and versions give an ``UnknownValue``."""
    versions = _VALUES.get(key_type)
    if versions is None:
        return (read_version(data) if len(data) > 1 else -1), UnknownValue(data)
    version = read_version(data)
    if version >= len(versions):
        return version, UnknownValue(data)
    name = RecordType(key_type).name
    if version < 0:
        raise CodecError(f"value of {name}: negative version {version}")
    try:
        decode = _HOT_DECODERS.get((key_type, version))
        if decode is not None and (hot_value := decode(data)) is not None:
            return version, hot_value
        value, end = versions[version].read(data, 2)
    except wire.BAD_INPUT as error:
        raise wire.compute_codec_error(f"value of {name} v{version}", error) from None
    if end != len(data):
        raise CodecError(f"value of {name} v{version}: {len(data) - end} bytes too many")
    return version, cast(RecordValue, value)
