"""Record keys and values as the JSON that Kafka's tools print.

Covers all record types of Kafka 4.3, including those of share and streams groups. Bytes are
base64, UUIDs Kafka's 22 characters. Tagged fields with default values are omitted; unknown tagged
fields are added as ``unknownTaggedFields``, so that nothing is lost.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias, cast

from model.log.records import RecordType
from storage.codec import wire
from storage.codec.errors import CodecError
from storage.codec.foreign_schemas import FOREIGN_SCHEMAS
from storage.codec.kinds import Compiled
from storage.codec.record_codec import read_type, read_version
from storage.codec.record_schemas import RECORD_SCHEMAS, RecordSchema

JsonObject: TypeAlias = dict[str, Any]

_SCHEMAS: dict[int, RecordSchema] = {**RECORD_SCHEMAS, **FOREIGN_SCHEMAS}


def compute_type_name(type_id: int) -> str | None:
    """Kafka's name for a record type, such as ``OFFSET_COMMIT``; ``None`` for unknown types."""
    return RecordType(type_id).name if type_id in _SCHEMAS else None


def key_to_json(data: bytes) -> JsonObject:
    """Decode a key to JSON; raises ``CodecError`` for types that Kafka 4.3 does not have."""
    return _to_json("key", _key_codec(read_type(data)), data)


def value_to_json(key_type: int, data: bytes) -> JsonObject:
    """Decode a value to JSON; raises ``CodecError`` for unknown types and versions."""
    return _to_json("value", _value_codec(key_type, read_version(data)), data)


@cache
def _key_codec(type_id: int) -> Compiled:
    if type_id not in _SCHEMAS:
        raise CodecError(f"record type {type_id} is unknown")
    return _SCHEMAS[type_id].key.compile(0)


@cache
def _value_codec(type_id: int, version: int) -> Compiled:
    if type_id not in _SCHEMAS:
        raise CodecError(f"record type {type_id} is unknown")
    schema = _SCHEMAS[type_id]
    if not 0 <= version <= schema.max_version:
        raise CodecError(f"{RecordType(type_id).name} has no value of version {version}")
    return schema.value.compile(version)


def _to_json(what: str, codec: Compiled, data: bytes) -> JsonObject:
    try:
        value, end = codec.read(data, 2)
        if end != len(data):
            raise CodecError(f"{len(data) - end} bytes too many")
        return cast(JsonObject, codec.to_json(value))
    except wire.BAD_INPUT as error:
        raise wire.compute_codec_error(what, error) from None
