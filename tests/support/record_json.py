"""Keys and values from Kafka's JSON: the inverse of ``storage.codec.to_json``."""

from __future__ import annotations

from storage.codec import wire
from storage.codec.kinds import Compiled
from storage.codec.to_json import JsonObject, _key_codec, _value_codec
from storage.codec.wire import INT16


def key_from_json(type_id: int, value: JsonObject) -> bytes:
    """The key with these fields. Raises ``CodecError`` if they do not match the type."""
    return _from_json("key", type_id, _key_codec(type_id), value)


def value_from_json(key_type: int, version: int, value: JsonObject) -> bytes:
    """The value with these fields, in the given version."""
    return _from_json("value", version, _value_codec(key_type, version), value)


def _from_json(what: str, head: int, codec: Compiled, value: JsonObject) -> bytes:
    try:
        out = bytearray(INT16.pack(head))
        codec.write(out, codec.from_json(value))
        return bytes(out)
    except wire.BAD_INPUT as error:
        raise wire.compute_codec_error(what, error) from None
