"""ApiVersions: only what can be looked at is offered, and Muster's own where it is to be added.

An API that kio does not know is not offered: it may name brokers, or groups, in a way that nobody
here has seen. So are the raft and controller APIs that name controllers; no client sends them.
Share and Streams groups stay as the broker offers them: they are always the cluster's, and what
their responses name are no brokers, but for ShareFetch and ShareAcknowledge, which are rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gateway.codec.decoding import Cursor, DecodeError
from gateway.codec.kio_schema import response_type
from gateway.rewriting.naming import CannotRewrite, check_version
from gateway.rewriting.skipping import (
    compile_skip,
    compile_skip_to,
    find_field,
    read_array_length,
)
from gateway.rewriting.splices import Splices, pack_length
from gateway.rewriting.versions import readable_versions
from model.errors import ErrorCode

API_VERSIONS_KEY: Final = 18

_NAME_CONTROLLERS: Final = frozenset((52, 53, 54, 59, 80, 81, 82))
_VERSIONS_MAX: Final = {55: 1}
"""DescribeQuorum names the controllers' listeners from version 2 on."""

OWN_OFFERS: Final[Mapping[int, range]] = {68: range(2), 69: range(2)}
"""ConsumerGroupHeartbeat and ConsumerGroupDescribe, which Muster serves for the cluster."""


def compute_offer(key: int, offered: range) -> range:
    """The versions of an API of the broker's that a client may use through a relay."""
    if key in _NAME_CONTROLLERS:
        return range(0)
    readable = readable_versions(key)
    start = max(offered.start, readable.start)
    stop = min(offered.stop, readable.stop, _VERSIONS_MAX.get(key, offered.stop) + 1)
    return range(start, max(start, stop))


def rewrite_api_versions(version: int, body: bytes, added: Mapping[int, range]) -> bytes:
    """Rewrite a response; raises ``CannotRewrite``.

    ConsumerGroupHeartbeat and ConsumerGroupDescribe are offered as ``added`` says, not as the
    broker does; that is why ``OWN_OFFERS`` is the usual ``added``, and an empty one takes them out.
    A broker that does not know the version answers in version 0.
    """
    code = int.from_bytes(body[:2], "big")
    if code == ErrorCode.UNSUPPORTED_VERSION:
        version = 0
    check_version(API_VERSIONS_KEY, version)
    entity: Any = response_type(API_VERSIONS_KEY, version)
    cursor = Cursor(body, 0, len(body), len(body))
    try:
        compile_skip_to(entity, "api_keys")(cursor)
        start = cursor.pos
        rows = _read_rows(cursor, find_field(entity, "api_keys").entity, {} if code else added)
    except DecodeError as error:
        raise CannotRewrite(str(error)) from error
    splices = Splices(body)
    head = pack_length(len(rows), entity.__flexible__)
    splices.replace(start, cursor.pos, head + b"".join(row for _, row in sorted(rows.items())))
    return splices.join()


def _read_rows(cursor: Cursor, entity: Any, added: Mapping[int, range]) -> dict[int, bytes]:
    flexible: bool = entity.__flexible__
    skip = compile_skip(entity)
    rows: dict[int, bytes] = {}
    for _ in range(read_array_length(cursor, flexible)):
        start = cursor.pos
        skip(cursor)
        key, least, most = _unpack(cursor.data, start)
        offer = compute_offer(key, range(least, most + 1))
        if offer and key not in OWN_OFFERS:
            rest = cursor.data[start + 6 : cursor.pos]
            rows[key] = _pack(key, offer.start, offer.stop - 1) + rest
    no_tags = b"\x00" if flexible else b""
    for key, offer in added.items():
        rows[key] = _pack(key, offer.start, offer.stop - 1) + no_tags
    return rows


def _unpack(data: bytes, pos: int) -> tuple[int, int, int]:
    parts = (data[at : at + 2] for at in (pos, pos + 2, pos + 4))
    key, least, most = (int.from_bytes(part, "big", signed=True) for part in parts)
    return key, least, most


def _pack(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(2, "big", signed=True) for number in numbers)
