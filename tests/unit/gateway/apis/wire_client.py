"""A plain blocking client of the Kafka wire that speaks any version of any API, in plain values.

Requests are keyword arguments, nested structures dicts; responses are dicts. Milliseconds for
times, 16 bytes for UUIDs, ints for error codes.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import io
import socket
import struct
import types
import typing
import uuid
from functools import cache
from typing import Any, Self

from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer

CLIENT_ID = b"muster-tests"


class ConnectionClosed(Exception):
    """The server closed the connection instead of answering."""


class WireClient:
    """One connection; requests one after the other."""

    def __init__(self, host: str, port: int, timeout_s: float = 30.0) -> None:
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        self._stream = self._socket.makefile("rb")
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def ask(self, api: str, version: int, /, **fields: Any) -> dict[str, Any]:
        """Send a request and return the response; raises ConnectionClosed."""
        self.send(api, version, **fields)
        return self.receive(api, version)

    def send(self, api: str, version: int, /, **fields: Any) -> None:
        """Send a request without waiting for the response."""
        self._correlation_id += 1
        frame = encode_request(api, version, self._correlation_id, fields)
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self, api: str, version: int) -> dict[str, Any]:
        """The next response on the connection."""
        size = self._stream.read(4)
        if len(size) < 4:
            raise ConnectionClosed(f"no answer to {api} v{version}")
        frame = self._stream.read(struct.unpack(">i", size)[0])
        return decode_response(api, version, frame)


@cache
def _entity(api: str, version: int, kind: str) -> type[Any]:
    module = importlib.import_module(f"kio.schema.{api}.v{version}.{kind}")
    name = "".join(part.capitalize() for part in api.split("_")) + kind.capitalize()
    return typing.cast(type[Any], getattr(module, name))


def build_request(api: str, version: int, fields: dict[str, Any]) -> Any:
    """The kio entity of a request."""
    return _build(_entity(api, version, "request"), fields)


def encode_request(api: str, version: int, correlation_id: int, fields: dict[str, Any]) -> bytes:
    """A frame without its size."""
    entity = build_request(api, version, fields)
    key = next(key for key, name in api_key_map.items() if name == api)
    out = io.BytesIO()
    out.write(struct.pack(">hhih", key, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID)
    if entity.__flexible__:
        out.write(b"\0")
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def decode_response(api: str, version: int, frame: bytes) -> dict[str, Any]:
    """The response in a frame without its size, as a dict."""
    cls = _entity(api, version, "response")
    start = 5 if cls.__header_schema__.__flexible__ else 4
    entity, size = entity_reader(cls)(frame, start)
    assert start + size == len(frame), "bytes follow the response"
    return typing.cast(dict[str, Any], to_plain(entity))


def _build(cls: type[Any], values: dict[str, Any]) -> Any:
    hints = typing.get_type_hints(cls)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    unknown = values.keys() - fields.keys()
    assert not unknown, f"{cls.__name__} v{cls.__version__} has no {sorted(unknown)}"
    built = {}
    for name, value in values.items():
        built[name] = _wrap(value, hints[name], fields[name].metadata.get("kafka_type", ""))
    return cls(**built)


def _wrap(value: Any, hint: Any, kind: str) -> Any:
    if kind.startswith("timedelta"):
        return datetime.timedelta(milliseconds=value)
    if kind == "uuid":
        return None if value in (None, bytes(16)) else uuid.UUID(bytes=value)
    if isinstance(value, dict):
        return _build(_dataclass_in(hint), value)
    if isinstance(value, list | tuple):
        return tuple(_wrap(item, hint, "") for item in value)
    return value


def _dataclass_in(hint: Any) -> type[Any]:
    if dataclasses.is_dataclass(hint):
        return typing.cast(type[Any], hint)
    for inner in typing.get_args(hint):
        if inner is not types.NoneType and inner is not Ellipsis:
            return _dataclass_in(inner)
    raise TypeError(f"no structure in {hint}")


def to_plain(value: Any) -> Any:
    """A kio entity, or a part of one, in plain values."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, datetime.timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime.datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return int(value)
    return value
