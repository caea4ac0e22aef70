"""Arrays of nodes: each element starts with node id, host and port, whatever follows."""

from __future__ import annotations

from functools import cache
from typing import Any

from gateway.codec.decoding import Cursor, skip_tags
from gateway.codec.encoding import encode
from gateway.codec.kio_schema import compute_fields
from gateway.rewriting.naming import Naming, OwnNode
from gateway.rewriting.skipping import Skip, compile_field, read_array_length
from gateway.rewriting.splices import pack_node, rewrite_node


def read_nodes(cursor: Cursor, entity: Any, naming: Naming) -> list[bytes]:
    """Step over an array, and return its elements with their new addresses."""
    flexible: bool = entity.__flexible__
    skip_tail = _compile_skip_tail(entity)
    nodes: list[bytes] = []
    for _ in range(read_array_length(cursor, flexible)):
        node = rewrite_node(cursor, flexible, naming)
        rest = cursor.pos
        skip_tail(cursor)
        if node is not None:
            nodes.append(node + cursor.data[rest : cursor.pos])
    return nodes


def pack_own(own: OwnNode, entity: Any) -> bytes:
    """The element for Muster's own node, which has no rack and is not fenced."""
    return pack_node(own.node_id, (own.host, own.port), entity.__flexible__) + _compute_tail(entity)


@cache
def _compile_skip_tail(entity: Any) -> Skip:
    """A function that steps over what follows the port."""
    flexible: bool = entity.__flexible__
    rows = [row for row in compute_fields(entity) if row.tag is None]
    assert [row.kafka_type for row in rows[:3]] == ["int32", "string", "int32"]
    steps = [compile_field(row, flexible) for row in rows[3:]]
    if flexible:
        steps.append(skip_tags)

    def skip(cursor: Cursor) -> None:
        for step in steps:
            step(cursor)

    return skip


@cache
def _compute_tail(entity: Any) -> bytes:
    flexible: bool = entity.__flexible__
    rows = compute_fields(entity)
    values = {row.name: None if row.nullable else row.default for row in rows}
    head = pack_node(0, ("", 0), flexible)
    encoded = encode(entity, entity(**values))
    assert len(encoded) >= len(head)
    return encoded[len(head) :]
