"""Request headers, and the ``Route`` of each API key and version."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final

from coordinator.runtime.loop.slices import Steps
from gateway.api import Api, GatewayNode, LongDecoder, Route
from gateway.codec.decoding import Cursor, DecodeError, decode, read_unsigned_varint
from gateway.codec.decoding_in_slices import LEAST_BYTES, decode_in_slices
from gateway.codec.encoding import encode
from gateway.codec.encoding_in_slices import encode_in_slices
from gateway.codec.kio_schema import request_type, response_type
from gateway.fronting.front import Front
from gateway.fronting.offered import SERVED_HERE, compute_offered

API_VERSIONS_KEY: Final = 18
FIXED_BYTES: Final = 8
"""API key, version and correlation id, which start every request header."""

_KEY_AND_VERSION: Final = struct.Struct(">hh")
_HEADER_TAGS_MAX: Final = 1_000


class Routes:
    """The routes of the served APIs, keyed by the four bytes of API key and version."""

    def __init__(self, apis: tuple[Api, ...], elements: int) -> None:
        self._apis: Mapping[int, Api] = {api.key: api for api in apis}
        self._elements = elements
        self.known: dict[bytes, Route] = {}
        """The routes that were requested so far."""

    def find(self, key_and_version: bytes) -> Route | None:
        """The route of a request; ``None`` if the API or the version is not served."""
        route = self.known.get(key_and_version)
        if route is None:
            key, version = _KEY_AND_VERSION.unpack(key_and_version)
            api = self._apis.get(key)
            if api is None or version not in api.versions:
                return None
            route = self.known[key_and_version] = self._make(api, version)
        return route

    def knows(self, key: int) -> bool:
        """Whether any version of this API is served."""
        return key in self._apis

    def _make(self, api: Api, version: int) -> Route:
        request: Any = request_type(api.key, version)
        response: Any = response_type(api.key, version)
        elements = self._elements

        def decode_body(data: bytes, pos: int, end: int) -> Any:
            return decode(request, data, pos, end, elements)

        def decode_long(data: bytes, pos: int, end: int) -> Steps[Any]:
            return decode_in_slices(request, data, pos, end, elements)

        by_hand = None if api.decode is None else api.decode(version, elements)
        long_by_hand = None if api.decode_long is None else api.decode_long(version, elements)
        has_tags = response.__header_schema__.__flexible__
        head = struct.Struct(">i4sx" if has_tags else ">i4s")
        return Route(
            api=api,
            version=version,
            header_tags=request.__header_schema__.__flexible__,
            head_size=head.size - 4,
            pack_head=head.pack,
            decode=by_hand or decode_body,
            decode_long=long_by_hand
            or (None if by_hand else LongDecoder(LEAST_BYTES, decode_long)),
            encode=lambda entity: encode(response, entity),
            encode_long=lambda entity: encode_in_slices(response, entity),
        )


class FrontedRoutes(Routes):
    """The routes of a node in front of a cluster, which may come to serve fewer versions.

    None is ``known``, so that each request is looked up; a route once found stays for the APIs of
    groups, since members live on.
    """

    def __init__(self, apis: tuple[Api, ...], elements: int, front: Front) -> None:
        super().__init__(apis, elements)
        self._front = front
        self._made: dict[bytes, Route] = {}

    def find(self, key_and_version: bytes) -> Route | None:
        """See ``Routes``."""
        key, version = _KEY_AND_VERSION.unpack(key_and_version)
        route = self._made.get(key_and_version)
        if route is not None and key in SERVED_HERE:
            return route
        api = self._apis.get(key)
        if api is None or version not in compute_offered(self._front, key, api.versions):
            return None
        if route is None:
            route = self._made[key_and_version] = self._make(api, version)
        return route


def make_routes(node: GatewayNode) -> Routes:
    """The routes of a node."""
    elements = node.settings.gateway_array_elements_max
    if node.front is None:
        return Routes(node.apis, elements)
    return FrontedRoutes(node.apis, elements, node.front)


def skip_header(data: bytes, pos: int, end: int, header_tags: bool) -> tuple[bytes, int]:
    """Read the header from the client id at ``pos`` on: the client id's bytes and the body's start.

    The client id is a non-compact string in every header version, so that any broker can parse it
    (KIP-511). Raises ``DecodeError``.
    """
    if end - pos < 2:
        raise DecodeError("the header is truncated")
    length = int.from_bytes(data[pos : pos + 2], "big", signed=True)
    pos += 2
    if length < -1 or length > end - pos:
        raise DecodeError(f"the client id has length {length}, but {end - pos} bytes are left")
    client_id = data[pos : pos + max(length, 0)]
    pos += max(length, 0)
    if not header_tags:
        return client_id, pos
    if pos < end and data[pos] == 0:
        return client_id, pos + 1
    return client_id, _skip_tags(Cursor(data, pos, end, _HEADER_TAGS_MAX))


def _skip_tags(cursor: Cursor) -> int:
    tags = read_unsigned_varint(cursor)
    cursor.spend(tags)
    for _ in range(tags):
        read_unsigned_varint(cursor)
        cursor.take(read_unsigned_varint(cursor))
    return cursor.pos
