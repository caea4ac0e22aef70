"""A copy of some bytes in which pieces are replaced."""

from __future__ import annotations

import struct

from gateway.codec.decoding import Cursor, read_compact_length
from gateway.codec.encoding import compact_length
from gateway.rewriting.naming import Address, Naming
from gateway.rewriting.skipping import read_length, skip_bytes

_PACK_INT16 = struct.Struct(">h").pack
_PACK_INT32 = struct.Struct(">i").pack
_UNPACK_INT32 = struct.Struct(">i").unpack_from


class Splices:
    """Gathers the pieces of the copy; what is not replaced is copied as it is."""

    __slots__ = ("_copied", "_data", "_parts")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._parts: list[bytes] = []
        self._copied = 0

    def replace(self, start: int, end: int, piece: bytes) -> None:
        """Have ``piece`` in the place of ``data[start:end]``; to be called from left to right."""
        self._parts += (self._data[self._copied : start], piece)
        self._copied = end

    def join(self) -> bytes:
        """The copy."""
        if not self._parts:
            return self._data
        return b"".join((*self._parts, self._data[self._copied :]))


def pack_length(length: int, flexible: bool) -> bytes:
    """The length of an array."""
    return compact_length(length) if flexible else _PACK_INT32(length)


def pack_text(text: str, flexible: bool) -> bytes:
    """A string that is not null."""
    encoded = text.encode()
    return (compact_length if flexible else _PACK_INT16)(len(encoded)) + encoded


def pack_node(node_id: int, address: Address, flexible: bool) -> bytes:
    """A node id with its host and port, the order that all responses have."""
    host, port = address
    return _PACK_INT32(node_id) + pack_text(host, flexible) + _PACK_INT32(port)


def read_node(cursor: Cursor, flexible: bool) -> int:
    """Step over a node's id, host and port, and return the id."""
    pos = cursor.pos
    skip_bytes(cursor, 4)
    length = read_compact_length(cursor) if flexible else read_length(cursor, 2)
    skip_bytes(cursor, max(length, 0) + 4)
    node_id: int = _UNPACK_INT32(cursor.data, pos)[0]
    return node_id


def rewrite_node(cursor: Cursor, flexible: bool, naming: Naming) -> bytes | None:
    """Step over a node, and return it with its new address; ``None`` if it has none."""
    node_id = read_node(cursor, flexible)
    address = naming.find(node_id)
    return None if address is None else pack_node(node_id, address, flexible)
