"""Reads big-endian integers at many positions at once."""

from __future__ import annotations

import numpy as np

from storage.columnar.batch_columns import Int64Array


def read_int16s(data: bytes, positions: Int64Array) -> Int64Array:
    """The int16 at each position; all positions must be within the data."""
    return _read(data, positions, ">i2", 2)


def read_int32s(data: bytes, positions: Int64Array) -> Int64Array:
    """The int32 at each position."""
    return _read(data, positions, ">i4", 4)


def read_int64s(data: bytes, positions: Int64Array) -> Int64Array:
    """The int64 at each position."""
    return _read(data, positions, ">i8", 8)


def _read(data: bytes, positions: Int64Array, kind: str, size: int) -> Int64Array:
    shape = (max(0, len(data) - size + 1),)
    return np.ndarray(shape, dtype=kind, buffer=data, strides=(1,))[positions].astype(np.int64)
