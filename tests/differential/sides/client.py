"""One connection of the wire, with requests as plain values: names of fields, no entities."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Mapping
from typing import Any, Self

from gateway.codec.kio_schema import compute_fields, request_type
from tests.unit.gateway.wire_rig import frame, parse

CLIENT_ID = "differential"
TIMEOUT_S = 120.0


def make_entity(target: Any, values: Mapping[str, Any]) -> Any:
    """An entity of a type, and those in it; what is not named has its default."""
    fields = {row.name: row for row in compute_fields(target)}
    unknown = values.keys() - fields.keys()
    assert not unknown, f"{target.__name__} has no {unknown}"
    made = {name: row.default for name, row in fields.items()}
    for name, value in values.items():
        entity = fields[name].entity
        if entity is not None and isinstance(value, list | tuple):
            made[name] = tuple(make_entity(entity, item) for item in value)
        elif entity is not None and isinstance(value, Mapping):
            made[name] = make_entity(entity, value)
        else:
            made[name] = tuple(value) if isinstance(value, list) else value
    return target(**made)


class Connection:
    """Asks, and waits for the answer."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._client_id = client_id
        self._ids = itertools.count(1)

    @classmethod
    async def open(cls, address: str, client_id: str = CLIENT_ID) -> Self:
        """Connect to HOST:PORT."""
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)), client_id)

    async def ask(
        self, key: int, version: int, /, within_s: float | None = TIMEOUT_S, **values: Any
    ) -> Any:
        """The answer to a request."""
        correlation_id = next(self._ids)
        request = make_entity(request_type(key, version), values)
        self._writer.write(frame(key, version, correlation_id, request, self._client_id))
        async with asyncio.timeout(within_s):
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            found, answer = parse(key, version, await self._reader.readexactly(size))
        assert found == correlation_id
        return answer

    def close(self) -> None:
        self._writer.close()
