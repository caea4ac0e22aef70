"""Converts slices of one buffer to an Arrow array, with one copy and no call per slice."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from storage.columnar.batch_columns import BoolArray, Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """Non-overlapping slices of a buffer, one per row; ``are_there`` is false for null."""

    starts: Int64Array
    lengths: Int64Array
    are_there: BoolArray


def make_binary(data: bytes, slices: Slices) -> pa.Array:
    """The slices as ``binary``."""
    starts, lengths, are_there = slices.starts, slices.lengths, slices.are_there
    count = len(starts)
    if not are_there.any():
        return pa.nulls(count, pa.binary())
    rows = np.flatnonzero(are_there)
    begins, ends = starts[rows], starts[rows] + lengths[rows]
    order: npt.NDArray[np.int64] | None = None
    if (begins[1:] < ends[:-1]).any():
        order = np.argsort(begins, kind="stable")
        begins, ends = begins[order], ends[order]
    # An array of all slices and the gaps between them, of which every second element is taken.
    bounds = np.empty(2 * len(rows), dtype=np.int32)
    bounds[0::2] = begins
    bounds[1::2] = ends
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    everything = pa.Array.from_buffers(pa.binary(), 2 * len(rows) - 1, buffers)
    places = np.arange(0, 2 * len(rows), 2, dtype=np.int32)
    if order is not None:
        sorted_places = places
        places = np.empty_like(sorted_places)
        places[order] = sorted_places
    if len(rows) == count:
        return everything.take(pa.array(places))
    chosen = np.zeros(count, dtype=np.int32)
    chosen[rows] = places
    return everything.take(pa.array(chosen, mask=~are_there))


def make_text(data: bytes, slices: Slices) -> tuple[pa.Array, BoolArray]:
    """The slices as ``string``, and a mask of rows that are not UTF-8, which are null."""
    array = make_binary(data, slices)
    try:
        return array.cast(pa.string()), np.zeros(len(array), dtype=bool)
    except pa.ArrowInvalid:
        pass
    texts: list[str | None] = []
    are_wrong = np.zeros(len(array), dtype=bool)
    for index, value in enumerate(array.to_pylist()):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            texts.append(None)
            are_wrong[index] = True
    return pa.array(texts, pa.string()), are_wrong
