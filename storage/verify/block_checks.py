"""Blocks of batches: slicing them, and the checks of headers and encoding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from storage.codec.batch_encoding import reencode_batch
from storage.codec.batches import HEADER_SIZE, decode_batch
from storage.codec.errors import CodecError
from storage.columnar.batch_columns import BatchColumns, BoolArray, Int64Array
from storage.columnar.record_columns import RecordColumns, read_record_columns
from storage.log.compression import decompress
from storage.verify.violation import LogViolation

_KNOWN_ATTRIBUTES = 0x7F
_OWN_ATTRIBUTES = 0x30
"""Attribute bits of batches written by this server: transactional and control."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What must hold for the next block of a partition.

    From ``dense_from`` on, every offset has a record and timestamps never go back, as in all
    batches written by this server; ``None`` if the log may have gaps everywhere. ``last_time``
    (wall ms) is the latest timestamp of such a batch before the block.
    """

    next_offset: int
    dense_from: int | None
    last_time: int


def cut_batches(batches: BatchColumns, start: int, end: int) -> BatchColumns:
    """A range of a block's batches, which shares the block's data."""
    columns = {
        field.name: getattr(batches, field.name)[start:end]
        for field in fields(batches)
        if field.name != "data"
    }
    return BatchColumns(data=batches.data, **columns)


def cut_records(
    batches: BatchColumns, records: RecordColumns, start: int, end: int
) -> RecordColumns:
    """The records of a range of a block's batches."""
    ends = np.concatenate(([0], np.cumsum(batches.counts)))
    first, last = int(ends[start]), int(ends[end])
    columns = {
        field.name: getattr(records, field.name)[first:last]
        for field in fields(records)
        if field.name != "data"
    }
    cut = RecordColumns(data=records.data, **columns)
    return replace(cut, batches=cut.batches - start)


def find_wrong_header(batches: BatchColumns, expected: Expected) -> tuple[int, LogViolation] | None:
    """The first batch with an invalid header, and what is wrong with it."""
    ends = np.concatenate(([expected.next_offset], batches.last_offsets[:-1] + 1))
    bases = batches.base_offsets
    checks: list[tuple[BoolArray, str, Callable[[int], str]]] = [
        (
            bases < ends,
            "offsets",
            lambda at: f"a batch begins at offset {bases[at]}, below the expected {ends[at]}",
        ),
        *_find_wrong_producers(batches),
        (
            (batches.attributes & ~_KNOWN_ATTRIBUTES) != 0,
            "header",
            lambda at: f"a batch has attributes {int(batches.attributes[at]):#x}",
        ),
        (
            batches.leader_epochs < -1,
            "header",
            lambda at: f"a batch has leader epoch {batches.leader_epochs[at]}",
        ),
        (
            batches.counts > batches.last_offsets - bases + 1,
            "header",
            lambda at: f"a batch has {batches.counts[at]} records in fewer offsets",
        ),
    ]
    if expected.dense_from is not None:
        checks += _find_gaps(batches, ends, expected.dense_from)
        checks.append(_find_times_that_go_back(batches, expected.last_time, expected.dense_from))
    found = [(int(np.argmax(mask)), rule, say) for mask, rule, say in checks if mask.any()]
    if not found:
        return None
    index, rule, say = min(found, key=lambda each: each[0])
    return index, LogViolation(rule, say(index), int(bases[index]))


def _find_wrong_producers(
    batches: BatchColumns,
) -> list[tuple[BoolArray, str, Callable[[int], str]]]:
    ids, epochs = batches.producer_ids, batches.producer_epochs
    without = ids < 0
    return [
        (
            without & ((ids != -1) | (epochs != -1)),
            "producer",
            lambda at: f"a batch has producer id {ids[at]} and epoch {epochs[at]}",
        ),
        (
            ~without & (epochs < 0),
            "producer",
            lambda at: f"a batch of producer id {ids[at]} has epoch {epochs[at]}",
        ),
        (
            without & (batches.are_transactional | batches.are_control),
            "producer",
            lambda at: "a transactional batch has no producer id",
        ),
        (
            batches.are_control & ~batches.are_transactional,
            "producer",
            lambda at: "a control batch is not transactional",
        ),
        (
            batches.are_control & (batches.counts > 1),
            "producer",
            lambda at: f"a control batch has {batches.counts[at]} records",
        ),
    ]


def _find_times_that_go_back(
    batches: BatchColumns, last_time: int, dense_from: int
) -> tuple[BoolArray, str, Callable[[int], str]]:
    times = batches.max_timestamps
    is_own = batches.base_offsets >= dense_from
    own_times = np.where(is_own, times, -1)
    latest = np.maximum.accumulate(np.concatenate(([last_time], own_times[:-1])))
    return (
        is_own & (times < latest),
        "timestamps",
        lambda at: f"a batch has timestamp {times[at]}, after a batch with timestamp {latest[at]}",
    )


def _find_gaps(
    batches: BatchColumns, ends: Int64Array, dense_from: int
) -> list[tuple[BoolArray, str, Callable[[int], str]]]:
    bases, lasts = batches.base_offsets, batches.last_offsets
    is_own = bases >= dense_from
    wanted = np.maximum(ends, dense_from)
    return [
        (
            is_own & (bases != wanted),
            "offsets",
            lambda at: f"offset {wanted[at]} is missing: the next batch begins at {bases[at]}",
        ),
        (
            ~is_own & (lasts >= dense_from),
            "offsets",
            lambda at: f"a batch spans offset {dense_from}, where another must begin",
        ),
        (
            is_own & (batches.counts != lasts - bases + 1),
            "offsets",
            lambda at: (
                f"a batch of {lasts[at] - bases[at] + 1} offsets has {batches.counts[at]} records"
            ),
        ),
        (
            is_own & ((batches.attributes & ~_OWN_ATTRIBUTES) != 0),
            "header",
            lambda at: (
                f"a batch written by this server has attributes {int(batches.attributes[at]):#x}"
            ),
        ),
        (
            is_own & (batches.leader_epochs != 0),
            "header",
            lambda at: (
                f"a batch written by this server has leader epoch {batches.leader_epochs[at]}"
            ),
        ),
    ]


def read_records(batches: BatchColumns) -> tuple[RecordColumns, int, LogViolation | None]:
    """The records up to the first unreadable batch, the number of batches read, and the error."""
    try:
        return read_record_columns(batches, decompress), len(batches.starts), None
    except CodecError as error:
        message = str(error)
    for index, start in enumerate(batches.starts.tolist()):
        try:
            decode_batch(batches.data, start, decompress=decompress)
        except CodecError as error:
            wrong = LogViolation("records", str(error), int(batches.base_offsets[index]))
            whole = cut_batches(batches, 0, index)
            return read_record_columns(whole, decompress), index, wrong
    raise LogViolation("records", message, int(batches.base_offsets[0]))


def find_wrong_encoding(
    batches: BatchColumns, records: RecordColumns
) -> tuple[int, LogViolation] | None:
    """The first batch whose bytes differ from an encoding of its records, and why.

    In compressed batches only the records are compared, and timestamps only if each record has its
    own.
    """
    counts = batches.counts
    wrong_times = np.zeros(len(counts), dtype=bool)
    filled = np.flatnonzero(counts)
    if filled.size:
        firsts = (np.cumsum(counts) - counts)[filled]
        highest = np.maximum.reduceat(records.timestamps, firsts)
        wrong_times[filled] = highest != batches.max_timestamps[filled]
    sizes, are_plain = _compute_sizes(batches, records)
    exact = ~batches.are_log_append_time & (batches.compressions == 0)
    exact[records.batches[records.have_headers]] = False
    wrong_sizes = exact & (sizes != batches.sizes - HEADER_SIZE)
    wrong_flags = np.zeros(len(counts), dtype=bool)
    wrong_flags[records.batches[~are_plain]] = True
    wrong_flags &= ~batches.are_log_append_time & ~wrong_sizes
    wrong = wrong_times | wrong_sizes | wrong_flags
    for index in np.unique(records.batches[records.have_headers]).tolist():
        wrong[index] |= not _is_canonical(batches, index)
    if not wrong.any():
        return None
    index = int(np.argmax(wrong))
    offset = int(batches.base_offsets[index])
    if wrong_times[index]:
        why = f"a batch has max timestamp {batches.max_timestamps[index]}, its records have another"
        return index, LogViolation("timestamps", why, offset)
    why = "encoding the records of a batch gives other bytes"
    return index, LogViolation("records", why, offset)


def _is_canonical(batches: BatchColumns, index: int) -> bool:
    start, size = int(batches.starts[index]), int(batches.sizes[index])
    batch = decode_batch(batches.data, start, decompress=decompress)
    if batch.compression or batch.is_log_append_time:
        return True
    return reencode_batch(batch) == batches.data[start : start + size]


def _compute_sizes(batches: BatchColumns, records: RecordColumns) -> tuple[Int64Array, BoolArray]:
    """The encoded size of each batch's records, and which records have no attributes.

    A varint that is longer than necessary shifts the position of the attributes byte, but then the
    size is wrong as well.
    """
    of = records.batches
    heads = 1 + compute_zigzag_sizes(records.timestamps - batches.base_timestamps[of])
    heads += compute_zigzag_sizes(records.offsets - batches.base_offsets[of])
    heads += compute_zigzag_sizes(records.key_lengths)
    bodies = heads + np.maximum(records.key_lengths, 0) + 1
    bodies += compute_zigzag_sizes(records.value_lengths) + np.maximum(records.value_lengths, 0)
    totals = bodies + compute_zigzag_sizes(bodies)
    sizes = np.bincount(of, weights=totals, minlength=len(batches.counts)).astype(np.int64)
    view = np.frombuffer(records.data, dtype=np.uint8)
    first_bytes = view[np.maximum(records.key_starts - heads, 0)]
    return sizes, (first_bytes == 0) | records.have_headers


def compute_zigzag_sizes(values: Int64Array) -> Int64Array:
    """The encoded sizes of signed varints."""
    rest = ((values << 1) ^ (values >> 63)).view(np.uint64) >> np.uint64(7)
    sizes = np.ones(len(values), dtype=np.int64)
    while rest.any():
        sizes += rest != 0
        rest >>= np.uint64(7)
    return sizes
