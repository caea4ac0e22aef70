"""FindCoordinator: groups that are here are Muster's node's, others get their broker's relay."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Final

from gateway.codec.decoding import Cursor, DecodeError, decode, read_compact_length, skip_tags
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import compute_fields, request_type, response_type
from gateway.rewriting.naming import CannotRewrite, Naming, check_version
from gateway.rewriting.skipping import compile_skip_to, read_array_length, skip_bytes
from gateway.rewriting.splices import Splices, pack_length, pack_node, read_node
from model.errors import ErrorCode

FIND_COORDINATOR_KEY: Final = 10
GROUP_KEYS: Final = 0
KEYS_MAX: Final = 100_000
"""Of a request: each costs a microsecond, and a frame has room for millions."""
_BATCHED: Final = 4
"""The first version that asks for several keys."""
_INT16: Final = struct.Struct(">h")
_NO_ERROR: Final = bytes(4)
"""Code 0, no message, no tags."""
_NOWHERE: Final = pack_node(-1, ("", -1), True)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a FindCoordinator request asks for; responses before version 4 do not repeat it."""

    key_type: int
    keys: tuple[str, ...]


def read_find_coordinator(version: int, body: bytes) -> Asked:
    """Read a request; raises ``CannotRewrite``."""
    check_version(FIND_COORDINATOR_KEY, version)
    try:
        request = decode(request_type(FIND_COORDINATOR_KEY, version), body, 0, len(body), KEYS_MAX)
    except DecodeError as error:
        raise CannotRewrite(str(error)) from error
    key_type: int = getattr(request, "key_type", GROUP_KEYS)
    if version < _BATCHED:
        return Asked(key_type, (request.key,))
    return Asked(key_type, request.coordinator_keys)


def rewrite_find_coordinator(version: int, body: bytes, asked: Asked, naming: Naming) -> bytes:
    """Rewrite a response to ``asked``; raises ``CannotRewrite``."""
    check_version(FIND_COORDINATOR_KEY, version)
    entity: Any = response_type(FIND_COORDINATOR_KEY, version)
    is_group = asked.key_type == GROUP_KEYS
    try:
        if version >= _BATCHED:
            return _rewrite_batch(entity, body, is_group, naming)
        response = decode(entity, body, 0, len(body), len(body))
    except (DecodeError, UnicodeDecodeError) as error:
        raise CannotRewrite(str(error)) from error
    values = _read_values(response)
    _name_coordinator(values, asked.keys[0] if is_group else None, naming)
    return encode(entity, entity(**values))


def _rewrite_batch(entity: Any, body: bytes, is_group: bool, naming: Naming) -> bytes:
    """Rewrite the answers for many keys as bytes: tools ask for all groups of a cluster at once."""
    cursor = Cursor(body, 0, len(body), len(body))
    compile_skip_to(entity, "coordinators")(cursor)
    start = cursor.pos
    packed: dict[int, bytes] = {}
    rows = [
        _rewrite_row(cursor, is_group, naming, packed)
        for _ in range(read_array_length(cursor, flexible=True))
    ]
    splices = Splices(body)
    splices.replace(start, cursor.pos, pack_length(len(rows), flexible=True) + b"".join(rows))
    return splices.join()


def _rewrite_row(cursor: Cursor, is_group: bool, naming: Naming, packed: dict[int, bytes]) -> bytes:
    """One answer, changed as by ``_name_coordinator``. ``packed`` are addresses that were found."""
    start = cursor.pos
    key = cursor.take(read_compact_length(cursor))
    head, own = cursor.data[start : cursor.pos], naming.own
    node_id = read_node(cursor, True)
    code_at = cursor.pos
    (code,) = _INT16.unpack(cursor.take(2))
    skip_bytes(cursor, max(read_compact_length(cursor), 0))
    skip_tags(cursor)
    refused = code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    if is_group and own is not None and not refused and naming.is_here(key.decode("utf-8")):
        return head + pack_node(own.node_id, (own.host, own.port), True) + _NO_ERROR
    if code:
        return head + _NOWHERE + cursor.data[code_at : cursor.pos]
    found = packed.get(node_id)
    if found is None:
        address = naming.find(node_id)
        if address is None:
            message = cursor.data[code_at + _INT16.size : cursor.pos]
            return head + _NOWHERE + _INT16.pack(ErrorCode.COORDINATOR_NOT_AVAILABLE) + message
        found = packed[node_id] = pack_node(node_id, address, True) + _NO_ERROR
    return head + found


def _read_values(entity: Any) -> dict[str, Any]:
    kind: Any = type(entity)
    return {field.name: getattr(entity, field.name) for field in compute_fields(kind)}


def _name_coordinator(fields: dict[str, Any], group_id: str | None, naming: Naming) -> None:
    """Change the fields of one answer.

    Who may not see a group is not told where it is. A broker that has no relay is not named: the
    client asks again.
    """
    own = naming.own
    refused = fields["error_code"] == ErrorCode.GROUP_AUTHORIZATION_FAILED
    if group_id is not None and own is not None and not refused and naming.is_here(group_id):
        _set(fields, ErrorCode.NONE, own.node_id, own.host, own.port)
        return
    if fields["error_code"] != ErrorCode.NONE:
        _set(fields, fields["error_code"], -1, "", -1)
        return
    address = naming.find(fields["node_id"])
    if address is None:
        _set(fields, ErrorCode.COORDINATOR_NOT_AVAILABLE, -1, "", -1)
    else:
        _set(fields, ErrorCode.NONE, fields["node_id"], *address)


def _set(fields: dict[str, Any], code: int, node_id: int, host: str, port: int) -> None:
    if code == ErrorCode.NONE and "error_message" in fields:
        fields["error_message"] = None
    fields.update(error_code=int(code), node_id=node_id, host=host, port=port)
