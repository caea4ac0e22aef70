"""Results of worker processes as bytes, in parts of which none takes long to decode.

Long tuples, at any depth, are parts of their own; the last part has the result itself.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from io import BytesIO
from itertools import chain
from typing import Any, Final

PART_ROWS: Final = 200
"""Rows in a part, each decoded in up to 30 µs."""


class _Encoder(pickle.Pickler):
    def __init__(self, buffer: BytesIO, parts: list[bytes]) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self._parts = parts

    def persistent_id(self, obj: Any) -> tuple[int, int] | None:
        """Where among the parts a long tuple is: the first one, and the one after the last."""
        if type(obj) is not tuple or len(obj) <= PART_ROWS:
            return None
        found = [
            _encode(obj[begin : begin + PART_ROWS], self._parts)
            for begin in range(0, len(obj), PART_ROWS)
        ]
        first = len(self._parts)
        self._parts += found
        return first, len(self._parts)


class _Decoder(pickle.Unpickler):
    def __init__(self, data: bytes, decoded: Sequence[tuple[Any, ...]]) -> None:
        super().__init__(BytesIO(data))
        self._decoded = decoded

    def persistent_load(self, pid: Any) -> tuple[Any, ...]:
        first, after = pid
        return tuple(chain.from_iterable(self._decoded[first:after]))


def _encode(value: object, parts: list[bytes]) -> bytes:
    buffer = BytesIO()
    _Encoder(buffer, parts).dump(value)
    return buffer.getvalue()


def encode_parts(result: object) -> list[bytes]:
    """The parts of a result, in the order in which they are decoded."""
    parts: list[bytes] = []
    parts.append(_encode(result, parts))
    return parts


def decode_part(data: bytes, before: Sequence[Any]) -> Any:
    """Decode a part, given those before it. Only for what a process of ours has sent."""
    return _Decoder(data, before).load()
