"""What logs of batches without files have in common: slices of offsets, and marks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from pipeline.decoding.bounds import Bounds
from pipeline.decoding.scan import Damage, Piece
from pipeline.source.logs.group_log import (
    ServerSlice,
    Slice,
    StoreSlice,
    count_slices,
    pack_slices,
)
from pipeline.source.logs.marks import Mark, find_difference, find_last_mark, find_overlaps
from storage.codec.errors import CodecError
from storage.columnar.batch_columns import split_block

SLICE_OFFSETS = 250_000
"""Most offsets that a task reads."""

_Slice = TypeVar("_Slice", StoreSlice, ServerSlice)


def plan_offsets(
    wanted: Sequence[tuple[int, Bounds]],
    find_end: Callable[[int], int],
    min_slices: int | None,
    make: Callable[[int, Bounds, int], _Slice],
) -> list[list[Slice]]:
    """Slices of these partitions, grouped in tasks; ``make`` takes a slice's bounds and weight."""
    ranges = []
    for partition, bounds in wanted:
        closed = bounds.intersect(Bounds(end_offset=find_end(partition)))
        if not closed.is_empty():
            ranges.append((partition, closed))
    total = sum(_compute_weight(bounds) for _, bounds in ranges)
    slices: list[_Slice] = []
    for partition, bounds in ranges:
        count = count_slices(_compute_weight(bounds), total, SLICE_OFFSETS, min_slices)
        slices.extend(make(partition, *part) for part in _split(bounds, count))
    if min_slices is not None:
        return [[part] for part in slices]
    return pack_slices(slices, SLICE_OFFSETS)


def _split(bounds: Bounds, count: int) -> Iterator[tuple[Bounds, int]]:
    weight = _compute_weight(bounds)
    edges = [bounds.start_offset + weight * number // count for number in range(count + 1)]
    for start, end in pairwise(edges):
        yield bounds.intersect(Bounds(start, end)), end - start


def _compute_weight(bounds: Bounds) -> int:
    assert bounds.end_offset is not None
    return bounds.end_offset - bounds.start_offset


def find_mark_in(batch: bytes | None, bounds: Bounds) -> Mark | None:
    """The mark of a batch's last record within the bounds."""
    try:
        found = None if batch is None else find_last_mark(split_block(batch), bounds)
    except CodecError:
        return None
    return None if found is None else found[0]


def find_change_in(pieces: Iterable[Piece], mark: Mark, where: str) -> str | None:
    """Why these pieces of a log are not of the one of the mark; ``None`` if they may be."""
    for piece in pieces:
        if isinstance(piece, Damage):
            continue
        for index in find_overlaps(piece, mark):
            difference = find_difference(piece, index, mark)
            if difference is not None:
                return f"{where}, offset {int(piece.base_offsets[index])}: {difference}"
    return None
