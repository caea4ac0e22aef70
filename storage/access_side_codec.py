"""Keys of side records about access: ACLs."""

from __future__ import annotations

import struct

from model.acl_codes import (
    OPERATION_CODES,
    OPERATIONS,
    PATTERN_TYPE_CODES,
    PATTERN_TYPES,
    PERMISSION_CODES,
    PERMISSIONS,
    RESOURCE_TYPE_CODES,
    RESOURCE_TYPES,
)
from model.acls import Acl, ResourcePattern, Rule
from storage.codec.errors import CodecError

_ACL = struct.Struct(">4B2I")
"""Codes of resource type, pattern type, operation and permission; bytes of name and principal."""


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
