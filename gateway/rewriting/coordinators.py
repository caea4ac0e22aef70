"""FindCoordinator: groups that are here are Muster's node's, others get their broker's relay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from gateway.codec.decoding import DecodeError, decode
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import compute_fields, request_type, response_type
from gateway.rewriting.naming import CannotRewrite, Naming, check_version
from model.errors import ErrorCode

FIND_COORDINATOR_KEY: Final = 10
GROUP_KEYS: Final = 0
KEYS_MAX: Final = 100_000
"""Of a request: each costs a microsecond, and a frame has room for millions."""
_BATCHED: Final = 4
"""The first version that asks for several keys."""


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
    try:
        response = decode(entity, body, 0, len(body), len(body))
    except DecodeError as error:
        raise CannotRewrite(str(error)) from error
    values = _read_values(response)
    is_group = asked.key_type == GROUP_KEYS
    if version < _BATCHED:
        _name_coordinator(values, asked.keys[0] if is_group else None, naming)
        return encode(entity, entity(**values))
    rows: list[Any] = []
    for row in response.coordinators:
        fields = _read_values(row)
        _name_coordinator(fields, row.key if is_group else None, naming)
        rows.append(type(row)(**fields))
    values["coordinators"] = tuple(rows)
    return encode(entity, entity(**values))


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
