"""The endpoints of new leaders in Produce, Fetch, ShareFetch and ShareAcknowledge (KIP-951)."""

from __future__ import annotations

from typing import Any, Final

from gateway.codec.decoding import Cursor, DecodeError, read_unsigned_varint
from gateway.codec.encoding import encode_unsigned_varint
from gateway.codec.kio_schema import Field, response_type
from gateway.rewriting.naming import CannotRewrite, Naming, check_version
from gateway.rewriting.node_arrays import read_nodes
from gateway.rewriting.skipping import compile_skip_to, find_field, skip_bytes
from gateway.rewriting.splices import Splices, pack_length

PRODUCE_KEY: Final = 0
FETCH_KEY: Final = 1
SHARE_FETCH_KEY: Final = 78
SHARE_ACKNOWLEDGE_KEY: Final = 79

FIRST_WITH_ENDPOINTS: Final = {
    PRODUCE_KEY: 10,
    FETCH_KEY: 16,
    SHARE_FETCH_KEY: 0,
    SHARE_ACKNOWLEDGE_KEY: 0,
}
"""The first version of each API whose responses may name brokers."""

NAME: Final = "node_endpoints"


def rewrite_endpoints(key: int, version: int, body: bytes, naming: Naming) -> bytes:
    """Rewrite a response of one of these APIs; raises ``CannotRewrite``."""
    check_version(key, version)
    if version < FIRST_WITH_ENDPOINTS[key]:
        return body
    entity: Any = response_type(key, version)
    field = find_field(entity, NAME)
    cursor = Cursor(body, 0, len(body), len(body))
    splices = Splices(body)
    try:
        compile_skip_to(entity, NAME if field.tag is None else "")(cursor)
        if field.tag is None:
            _splice_array(cursor, field, naming, splices)
        else:
            _splice_tagged(cursor, field, naming, splices)
    except DecodeError as error:
        raise CannotRewrite(str(error)) from error
    return splices.join()


def _splice_array(cursor: Cursor, field: Field, naming: Naming, splices: Splices) -> None:
    start = cursor.pos
    array = _rewrite_array(cursor, field, naming)
    splices.replace(start, cursor.pos, array)


def _rewrite_array(cursor: Cursor, field: Field, naming: Naming) -> bytes:
    nodes = read_nodes(cursor, field.entity, naming)
    return pack_length(len(nodes), flexible=True) + b"".join(nodes)


def _splice_tagged(cursor: Cursor, field: Field, naming: Naming, splices: Splices) -> None:
    for _ in range(read_unsigned_varint(cursor)):
        tag = read_unsigned_varint(cursor)
        start = cursor.pos
        stop = read_unsigned_varint(cursor) + cursor.pos
        if tag == field.tag:
            array = _rewrite_array(cursor, field, naming)
            if cursor.pos != stop:
                raise DecodeError("the endpoints do not have the declared size")
            splices.replace(start, stop, encode_unsigned_varint(len(array)) + array)
        skip_bytes(cursor, stop - cursor.pos)
