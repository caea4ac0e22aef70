"""Vectorized decoding of signed varints."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def read_zigzags(
    data: npt.NDArray[np.uint8], positions: npt.NDArray[np.int64], max_bytes: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Read signed varints (``max_bytes`` 5) or varlongs (10) at many positions.

    Returns the values, the positions after them, and a mask of malformed ones. A malformed varint
    is longer than ``max_bytes`` or exceeds 32 or 64 bits; its value is undefined. ``data`` must
    extend ``max_bytes`` past the last position.
    """
    byte = data[positions]
    values = byte.astype(np.uint64)
    ends = positions + 1
    wrong = np.zeros(len(positions), dtype=bool)
    more = np.flatnonzero(byte >= 0x80)
    if more.size:
        _read_rest(data, positions, more, max_bytes, values=values, ends=ends, wrong=wrong)
    signs = (values & np.uint64(1)).astype(np.int64)
    return (values >> np.uint64(1)).astype(np.int64) ^ -signs, ends, wrong


def _read_rest(
    data: npt.NDArray[np.uint8],
    positions: npt.NDArray[np.int64],
    more: npt.NDArray[np.intp],
    max_bytes: int,
    *,
    values: npt.NDArray[np.uint64],
    ends: npt.NDArray[np.int64],
    wrong: npt.NDArray[np.bool_],
) -> None:
    """Read the bytes after the first of the varints that have more than one byte."""
    values[more] &= np.uint64(0x7F)
    bits = 32 if max_bytes == 5 else 64
    for index in range(1, max_bytes):
        byte = data[positions[more] + index]
        shift = 7 * index
        values[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        ends[more] += 1
        if shift + 7 > bits:
            wrong[more] |= (byte & 0x7F) >> (bits - shift) != 0
        more = more[byte >= 0x80]
        if not more.size:
            return
    wrong[more] = True
