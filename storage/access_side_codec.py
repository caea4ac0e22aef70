"""Side records about access: ACLs and client quotas."""

from __future__ import annotations

import struct
from typing import Final, assert_never

from google.protobuf.message import Message

from model.access.acl_codes import (
    OPERATION_CODES,
    OPERATIONS,
    PATTERN_TYPE_CODES,
    PATTERN_TYPES,
    PERMISSION_CODES,
    PERMISSIONS,
    RESOURCE_TYPE_CODES,
    RESOURCE_TYPES,
)
from model.access.acls import Acl, ResourcePattern, Rule
from model.access.quotas import DEFAULT_NAME, QuotaEntity
from model.log.side_records import AclSideKey, AclSideValue, QuotaSideKey, QuotaSideValue
from storage import side_pb2
from storage.codec.errors import CodecError

_ACL = struct.Struct(">4B2I")
"""Codes of resource type, pattern type, operation and permission; bytes of name and principal."""
_ENTITY = struct.Struct(">3B2I")
"""What there is of user, client id and address; bytes of user and client id."""
_ABSENT: Final = 0
_DEFAULT: Final = 1
_NAMED: Final = 2


def encode_acl(acl: Acl) -> bytes:
    """The name of an ACL's record."""
    (resource_type, name, pattern_type), rule = acl
    texts = [text.encode() for text in (name, rule.principal, rule.host)]
    return _ACL.pack(
        RESOURCE_TYPE_CODES[resource_type],
        PATTERN_TYPE_CODES[pattern_type],
        OPERATION_CODES[rule.operation],
        PERMISSION_CODES[rule.permission],
        len(texts[0]),
        len(texts[1]),
    ) + b"".join(texts)


def decode_acl(data: bytes) -> Acl:
    """The ACL of a record's name; raises ``CodecError``."""
    try:
        kind, pattern_kind, operation, permission, name_size, principal_size = _ACL.unpack_from(
            data
        )
        texts = data[_ACL.size :]
        if name_size + principal_size > len(texts):
            raise CodecError(f"ACL of {len(texts)} bytes of text, less than it says")
        name, rest = texts[:name_size].decode(), texts[name_size:]
        principal, host = rest[:principal_size].decode(), rest[principal_size:].decode()
        return Acl(
            ResourcePattern(RESOURCE_TYPES[kind], name, PATTERN_TYPES[pattern_kind]),
            Rule(principal, host, OPERATIONS[operation], PERMISSIONS[permission]),
        )
    except (struct.error, KeyError) as error:
        raise CodecError(f"ACL: {error!r}") from None


def encode_entity(entity: QuotaEntity) -> bytes:
    """The name of the record of an entity's quotas."""
    marks = [_ABSENT if name is None else _NAMED if name else _DEFAULT for name in entity]
    texts = [(name or "").encode() for name in entity]
    return _ENTITY.pack(*marks, len(texts[0]), len(texts[1])) + b"".join(texts)


def decode_entity(data: bytes) -> QuotaEntity:
    """The entity of a record's name; raises ``CodecError``."""
    try:
        *marks, user_size, client_size = _ENTITY.unpack_from(data)
    except struct.error as error:
        raise CodecError(f"quota entity: {error}") from None
    texts = data[_ENTITY.size :]
    if user_size + client_size > len(texts):
        raise CodecError(f"quota entity of {len(texts)} bytes of text, less than it says")
    parts = (
        texts[:user_size],
        texts[user_size : user_size + client_size],
        texts[user_size + client_size :],
    )
    names = [_decode_name(mark, part) for mark, part in zip(marks, parts, strict=True)]
    if names == [None, None, None]:
        raise CodecError("quota entity without a type")
    return QuotaEntity(*names)


def _decode_name(mark: int, text: bytes) -> str | None:
    if bool(text) != (mark == _NAMED) or mark > _NAMED:
        raise CodecError(f"quota entity: name of {len(text)} bytes with mark {mark}")
    if mark == _ABSENT:
        return None
    return text.decode() if mark == _NAMED else DEFAULT_NAME


def compute_access_message(value: AclSideValue | QuotaSideValue) -> Message:
    """The message of a record's value."""
    match value:
        case AclSideValue():
            return side_pb2.Acl()
        case QuotaSideValue():
            quotas = [side_pb2.Quota(name=name, value=limit) for name, limit in value.quotas]
            return side_pb2.Quotas(quotas=quotas)
        case _:
            assert_never(value)


def decode_access_value(
    key: AclSideKey | QuotaSideKey, data: bytes
) -> AclSideValue | QuotaSideValue:
    """The value of a record; raises ``DecodeError``."""
    match key:
        case AclSideKey():
            side_pb2.Acl.FromString(data)
            return AclSideValue()
        case QuotaSideKey():
            message = side_pb2.Quotas.FromString(data)
            return QuotaSideValue(tuple((quota.name, quota.value) for quota in message.quotas))
        case _:
            assert_never(key)
