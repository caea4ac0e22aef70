"""Clients of the Kafka wire with kio as the referee of the bytes: the project's codec has no part.

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

from kio.serial import entity_reader, entity_writer

from tests.support.wire.connection import Connection

_CLIENT_ID = "muster-tests"


class ConnectionClosed(Exception):
    """The server closed the connection instead of answering."""


class RefereedClient:
    """A connection that blocks: any version of any API, requests one after the other."""

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
        entity = build_request(api, version, fields)
        self._socket.sendall(encode_entity(entity, self._correlation_id))

    def receive(self, api: str, version: int) -> dict[str, Any]:
        """The next response on the connection."""
        (size,) = struct.unpack(">i", self._read_exactly(4, api))
        data = self._read_exactly(size, api)
        entity = decode_entity(_entity(api, version, "response"), data)
        return typing.cast(dict[str, Any], to_plain(entity))

    def _read_exactly(self, size: int, api: str) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise ConnectionClosed(f"no whole answer to {api}")
        return data


class RefereedConnection:
    """A connection on the loop that takes and gives entities: one request in flight."""

    def __init__(self, host: str, port: int) -> None:
        self._address = f"{host}:{port}"
        self._connection: Connection | None = None
        self._correlation_id = 0
        self._last = b""

    async def connect(self) -> None:
        self._connection = await Connection.open(self._address, patience_s=None)

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    async def send(self, request: Any, response_type: Any) -> Any:
        """Send a request entity, wait for its answer."""
        await self.send_only(request)
        return await self.receive(response_type)

    async def send_only(self, request: Any) -> None:
        """Send and wait for nothing."""
        assert self._connection is not None
        self._correlation_id += 1
        self._last = encode_entity(request, self._correlation_id)
        self._connection.writer.write(self._last)
        await self._connection.writer.drain()

    async def repeat(self) -> int:
        """The last request again as it was, but for its correlation id; the size of the answer."""
        assert self._connection is not None
        self._correlation_id += 1
        correlation_id = struct.pack(">i", self._correlation_id)
        self._connection.writer.write(self._last[:8] + correlation_id + self._last[12:])
        await self._connection.writer.drain()
        return len(await self._connection.read_frame())

    async def receive(self, response_type: Any) -> Any:
        """The answer to the oldest request without one."""
        assert self._connection is not None
        return decode_entity(response_type, await self._connection.read_frame())


@cache
def _entity(api: str, version: int, kind: str) -> type[Any]:
    module = importlib.import_module(f"kio.schema.{api}.v{version}.{kind}")
    name = "".join(part.capitalize() for part in api.split("_")) + kind.capitalize()
    return typing.cast(type[Any], getattr(module, name))


def build_request(api: str, version: int, fields: dict[str, Any]) -> Any:
    """The kio entity of a request."""
    return _build(_entity(api, version, "request"), fields)


def encode_entity(request: Any, correlation_id: int) -> bytes:
    """A whole request of an entity: size, header, body."""
    header_type = request.__header_schema__
    fields = {field.name for field in dataclasses.fields(header_type)}
    values = {
        "request_api_key": request.__api_key__,
        "request_api_version": request.__version__,
        "correlation_id": correlation_id,
        "client_id": _CLIENT_ID,
    }
    header = header_type(**{name: value for name, value in values.items() if name in fields})
    out = io.BytesIO()
    entity_writer(header_type)(out, header)
    entity_writer(type(request))(out, request)
    data = out.getvalue()
    return struct.pack(">i", len(data)) + data


def decode_entity(response_type: Any, data: bytes) -> Any:
    """The entity of an answer without its size."""
    _, start = entity_reader(response_type.__header_schema__)(data, 0)
    entity, size = entity_reader(response_type)(data, start)
    assert start + size == len(data), "bytes follow the response"
    return entity


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
