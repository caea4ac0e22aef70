"""Request frames for the cluster: a client's own bytes, or a request that was changed."""

from __future__ import annotations

import struct
from typing import Any, Final

from coordinator.runtime.loop.slices import Steps
from gateway.api import RequestContext
from gateway.codec.decoding import Cursor, DecodeError, read_compact_length
from gateway.codec.encoding_in_slices import encode_in_slices
from gateway.codec.kio_schema import request_type
from gateway.headers import FIXED_BYTES, skip_header

PRODUCE: Final = 0
_HEAD: Final = struct.Struct(">ihh4s")
_INT16: Final = struct.Struct(">h")


def make_raw_frame(context: RequestContext) -> bytes:
    """The frame as the client sent it."""
    return _pack_head(context, len(context.raw)) + context.raw


def encode_frame(context: RequestContext, request: Any) -> Steps[bytes]:
    """The frame of a decoded request, in time slices: for one that was changed, or is long."""
    body = yield from encode_in_slices(request_type(context.api.key, context.version), request)
    client_id = context.caller.client_id.encode()
    header = _INT16.pack(len(client_id)) + client_id + b"\x00" * context.route.header_tags
    return b"".join((_pack_head(context, len(header) + len(body)), header, body))


def _pack_head(context: RequestContext, size: int) -> bytes:
    route = context.route
    return _HEAD.pack(FIXED_BYTES + size, route.api.key, route.version, context.correlation)


def is_answered(context: RequestContext) -> bool:
    """Whether the request has a response; one that cannot be read has, or ends the link."""
    return context.api.key != PRODUCE or _read_acks(context) != 0


def _read_acks(context: RequestContext) -> int:
    raw = context.raw
    try:
        _, pos = skip_header(raw, 0, len(raw), context.route.header_tags)
        cursor = Cursor(raw, pos, len(raw), 0)
        if context.route.header_tags:
            length = read_compact_length(cursor)
        else:
            (length,) = _INT16.unpack(cursor.take(2))
        cursor.take(max(length, 0))
        (acks,) = _INT16.unpack(cursor.take(2))
    except (DecodeError, struct.error):
        return -1
    return int(acks)
