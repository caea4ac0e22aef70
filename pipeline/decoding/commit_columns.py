"""The values of offset commits, of all versions, as arrays.

Rare forms (tagged fields that Kafka 4.3 does not write, metadata lengths of four bytes) are left to
the codec for single records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.decoding.byte_slices import Slices
from pipeline.decoding.integers import read_int16s, read_int32s, read_int64s
from storage.columnar.batch_columns import BoolArray, Int64Array
from storage.columnar.record_columns import RecordColumns

_OFFSET_AT = 2
_EPOCH_AT = 10
_NO_EPOCH = -1
_NO_EXPIRY = -1
_UUID_SIZE = 16
_TAG_SIZE = 3
"""Count, tag and size of the one tagged field that Kafka 4.3 writes, the topic id."""


@dataclass(frozen=True, slots=True, eq=False)
class CommitColumns:
    """One entry per record, undefined unless ``are_read``. Times are wall ms.

    ``are_rare`` marks values of known versions that only the codec can read.
    """

    are_read: BoolArray
    are_rare: BoolArray
    offsets: Int64Array
    leader_epochs: Int64Array
    have_epoch: BoolArray
    metadata: Slices
    commit_timestamps: Int64Array
    expire_timestamps: Int64Array
    have_expiry: BoolArray
    topic_ids: Slices


def read_commits(
    records: RecordColumns, are_commits: BoolArray, versions: Int64Array
) -> CommitColumns:
    """The values of the records in ``are_commits``, whose versions are 0 to 4."""
    data, starts = records.data, records.value_starts
    ends = starts + np.maximum(records.value_lengths, 0)
    are_flexible = versions == 4
    have_epochs = versions >= 3
    positions = starts + np.where(have_epochs, 14, 10)
    fit = are_commits & (positions + 2 <= ends)

    lengths, length_sizes = _read_lengths(data, np.where(fit, positions, 0), are_flexible)
    metadata_starts = positions + length_sizes
    times_at = metadata_starts + lengths
    have_expiry = versions == 1
    tags_at = times_at + np.where(have_expiry, 16, 8)
    fit &= (length_sizes > 0) & (lengths >= 0) & (tags_at + are_flexible <= ends)
    safe_tags = np.where(fit, tags_at, 0)
    have_ids = fit & are_flexible & (ends - tags_at == _TAG_SIZE + _UUID_SIZE)
    ids_at = tags_at + _TAG_SIZE
    safe_ids = np.where(have_ids, tags_at, 0)
    have_ids &= (read_int16s(data, safe_ids) == 0x0100) & (
        np.frombuffer(data, dtype=np.uint8)[safe_ids + 2] == _UUID_SIZE
    )
    have_none = are_flexible & (ends - tags_at == 1)
    have_none &= np.frombuffer(data, dtype=np.uint8)[safe_tags] == 0
    are_read = fit & np.where(are_flexible, have_none | have_ids, tags_at == ends)
    have_ids &= are_read

    safe = np.where(are_read, starts, 0)
    safe_times = np.where(are_read, times_at, 0)
    epochs = read_int32s(data, np.where(are_read & have_epochs, starts + _EPOCH_AT, 0))
    expiries = read_int64s(data, np.where(are_read & have_expiry, times_at + 8, 0))
    nonzero = read_int64s(data, np.where(have_ids, ids_at, 0)) != 0
    nonzero |= read_int64s(data, np.where(have_ids, ids_at + 8, 0)) != 0
    return CommitColumns(
        are_read,
        are_commits & ~are_read,
        read_int64s(data, safe + _OFFSET_AT),
        epochs,
        are_read & have_epochs & (epochs != _NO_EPOCH),
        Slices(metadata_starts, lengths, are_read),
        read_int64s(data, safe_times),
        expiries,
        are_read & have_expiry & (expiries != _NO_EXPIRY),
        Slices(ids_at, np.full(len(starts), _UUID_SIZE), have_ids & nonzero),
    )


def _read_lengths(
    data: bytes, positions: Int64Array, are_flexible: BoolArray
) -> tuple[Int64Array, Int64Array]:
    """The lengths of strings, and the sizes of these lengths: 0 for those left to the codec."""
    raw = np.frombuffer(data, dtype=np.uint8)
    lengths = read_int16s(data, positions)
    sizes = np.full(len(positions), 2, dtype=np.int64)
    first = raw[positions].astype(np.int64)
    are_short = are_flexible & (first < 0x80)
    lengths[are_short] = first[are_short] - 1
    sizes[are_short] = 1
    are_long = np.flatnonzero(are_flexible & (first >= 0x80))
    if are_long.size:
        at = positions[are_long]
        second, third = raw[at + 1].astype(np.int64), raw[at + 2].astype(np.int64)
        two = (first[are_long] & 0x7F) | (second & 0x7F) << 7
        are_two = second < 0x80
        lengths[are_long] = np.where(are_two, two, two | third << 14) - 1
        sizes[are_long] = np.where(are_two, 2, np.where(third < 0x80, 3, 0))
    return lengths, sizes
