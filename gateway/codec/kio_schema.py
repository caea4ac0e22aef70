"""Reads Kafka's message schemas from kio's entity classes: fields, types, tags, defaults.

kio has a dataclass for every version of every message. This module turns them into ``Field`` rows,
which ``gateway.codec.decoding`` and ``gateway.codec.encoding`` compile. kio's own reader is not
used on client input: it allocates memory for the length that an array claims, so that thirty bytes
can end the process, and it rejects unknown tagged fields, which KIP-482 wants skipped.
"""

from __future__ import annotations

import datetime
import uuid
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import ModuleType, NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

from kio.index import load_payload_module
from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

_MILLISECOND: Final = datetime.timedelta(milliseconds=1)
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

FIXED: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "uint8": "B",
    "uint16": "H",
    "uint32": "I",
    "uint64": "Q",
    "float64": "d",
    "error_code": "h",
    "timedelta_i32": "i",
    "timedelta_i64": "q",
    "datetime_i64": "q",
    "uuid": "16s",
}
"""Fixed-width types, with their ``struct`` format characters."""

_IMPLICIT_DEFAULTS: Final[dict[str, Any]] = {
    "bool": False,
    "float64": 0.0,
    "uuid": None,
    "string": "",
    "bytes": b"",
    "records": None,
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field: ``entity`` is set for a nested entity, ``kafka_type`` for any other type.

    ``default`` is a plain value; ``tag`` is ``None`` for an untagged field.
    """

    name: str
    kafka_type: str
    entity: type | None
    is_array: bool
    nullable: bool
    tag: int | None
    default: Any


def _compute_plain(value: Any) -> Any:
    """Convert kio's value to the plain value that the gateway uses."""
    match value:
        case datetime.timedelta():
            return value // _MILLISECOND
        case datetime.datetime():
            return (value - _EPOCH) // _MILLISECOND
        case uuid.UUID():
            return value.bytes if value.int else None
        case tuple():
            return tuple(_compute_plain(item) for item in value)
        case _ if is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in fields(value)]
            return type(value)(**{name: _compute_plain(getattr(value, name)) for name in names})
        case _:
            return value


def _compute_implicit_default(kafka_type: str, entity: Any, is_array: bool) -> Any:
    """The default of a field whose schema has none: zero, empty, or an entity of defaults."""
    if is_array:
        return ()
    if entity is not None:
        return entity(**{row.name: row.default for row in compute_fields(entity)})
    return _IMPLICIT_DEFAULTS.get(kafka_type, 0)


def _compute_field(declared: Any) -> Field:
    kind, nullable, is_array = declared.type, False, False
    for _ in range(3):
        if get_origin(kind) in (UnionType, Union):
            nullable = True
            (kind,) = (arm for arm in get_args(kind) if arm is not NoneType)
        if get_origin(kind) is tuple:
            is_array = True
            kind = get_args(kind)[0]
    entity: Any = kind if is_dataclass(kind) else None
    kafka_type = declared.metadata.get("kafka_type", "")
    default: Any = declared.default
    if default is MISSING:
        default = _compute_implicit_default(kafka_type, entity, is_array)
    return Field(
        name=declared.name,
        kafka_type=kafka_type,
        entity=entity,
        is_array=is_array,
        nullable=nullable,
        tag=declared.metadata.get("tag"),
        default=_compute_plain(default),
    )


@cache
def compute_fields(entity: type) -> tuple[Field, ...]:
    """The fields of an entity class in wire order, followed by the tagged fields in tag order."""
    rows = [_compute_field(declared) for declared in fields(entity)]
    plain = [row for row in rows if row.tag is None]
    tagged = sorted((row for row in rows if row.tag is not None), key=lambda row: row.tag or 0)
    return (*plain, *tagged)


@cache
def _newest(key: int, direction: EntityType) -> int:
    versions = schema_name_map[api_key_map[key]]
    return max(version for version, kinds in versions.items() if direction in kinds)


def request_schema(key: int, version: int | None = None) -> Any:
    """kio's module of a request, loaded on first use; the newest version by default."""
    return _load(key, version, EntityType.request)


def response_schema(key: int, version: int | None = None) -> Any:
    """kio's module of a response, loaded on first use; the newest version by default."""
    return _load(key, version, EntityType.response)


@cache
def _load(key: int, version: int | None, direction: Any) -> ModuleType:
    return load_payload_module(
        key, _newest(key, direction) if version is None else version, direction
    )


@cache
def request_type(key: int, version: int) -> Any:
    """The entity class of a request."""
    return _payload_type(request_schema(key, version), EntityType.request)


@cache
def response_type(key: int, version: int) -> Any:
    """The entity class of a response."""
    return _payload_type(response_schema(key, version), EntityType.response)


def _payload_type(module: ModuleType, direction: EntityType) -> Any:
    return next(
        value
        for value in vars(module).values()
        if isinstance(value, type) and getattr(value, "__type__", None) is direction
    )
