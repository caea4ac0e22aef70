"""Verification of one log partition, block by block, with all checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from model.ids import GroupId, LogPartition
from storage.codec.errors import CodecError
from storage.columnar.batch_columns import BatchColumns, BoolArray
from storage.columnar.block_fold import BlockFold
from storage.columnar.record_columns import RecordColumns
from storage.log_store import LatestEntry, unpack_latest
from storage.transfer.partition_placement import read_group_id
from storage.verify.block_checks import (
    Expected,
    cut_batches,
    cut_records,
    find_wrong_encoding,
    find_wrong_header,
    read_records,
)
from storage.verify.group_invariants import GroupHistory, NoHistory
from storage.verify.record_checks import CheckGroup, RecordCheck
from storage.verify.violation import LogViolation, PartitionReport

_OFFSET_TYPE = b"\x00\x01"
_GROUP_TYPES = (2, 3, 11, 17)
"""Types of the records whose tombstone deletes a group."""

_WRITE_BATCH_BYTES = 1 << 19
"""A write is split into several batches with one timestamp only if it exceeds this size."""


class PartitionCheck:
    """Checks the batches of a partition, in order, and computes the state they lead to.

    ``start_offset`` is the lowest offset that a batch may have. From ``dense_from`` on, every
    offset must have a record; ``None`` allows gaps everywhere. ``with_groups`` enables the
    invariants of groups. Methods raise ``LogViolation``; ``report`` then covers what was read
    before it.
    """

    def __init__(
        self,
        partition: LogPartition,
        *,
        start_offset: int = 0,
        dense_from: int | None = None,
        check_group: CheckGroup | None = None,
        with_groups: bool = True,
    ) -> None:
        self.report = PartitionReport(partition, next_offset=start_offset)
        self._dense_from = dense_from
        self._records = RecordCheck(check_group)
        self._history = GroupHistory(dense_from) if with_groups else NoHistory()
        self._fold = BlockFold()
        self._offsets: dict[bytes, dict[bytes, bytes]] = {}
        """Committed offsets, by the key prefix of their group."""
        self._others: dict[bytes, bytes] = {}
        self._last_time = -1
        self._last_write: tuple[int, int, bool] | None = None
        """Size and timestamp of the previous batch, and whether it is non-transactional."""

    # -------------------------------------------------------------------------------- batches

    def apply(self, block: BatchColumns) -> None:
        """Check the next batches, whose CRCs the caller has verified."""
        expected = Expected(self.report.next_offset, self._dense_from, self._last_time)
        wrong = find_wrong_header(block, expected)
        if wrong is not None:
            block = cut_batches(block, 0, wrong[0])
        records, count, unreadable = read_records(block)
        if unreadable is not None:
            block, wrong = cut_batches(block, 0, count), (count, unreadable)
        miscoded = find_wrong_encoding(block, records)
        if miscoded is not None:
            records = cut_records(block, records, 0, miscoded[0])
            block, wrong = cut_batches(block, 0, miscoded[0]), miscoded
        start = 0
        for end in self._find_cuts(block, records):
            part = cut_batches(block, start, end)
            self._apply_part(part, cut_records(block, records, start, end))
            start = end
        if wrong is not None:
            raise wrong[1]

    def _find_cuts(self, block: BatchColumns, records: RecordColumns) -> Iterator[int]:
        """Where to check invariants: after each batch that deletes a group, and at the end."""
        view = np.frombuffer(records.data, dtype=np.uint8)
        lengths, starts = records.key_lengths, records.key_starts
        is_group = (lengths >= 2) & (view[starts] == 0) & np.isin(view[starts + 1], _GROUP_TYPES)
        is_group &= records.value_lengths < 0
        ends = set((np.unique(records.batches[is_group]) + 1).tolist())
        yield from sorted(ends | {len(block.starts)})

    def _apply_part(self, block: BatchColumns, records: RecordColumns) -> None:
        if not len(block.starts):
            return
        goes_on = self._find_continued(block)
        if not goes_on[0]:
            self._history.end_write(self._has_offsets)
        checked = list(self._records.check(block, records))
        try:
            changes = self._fold.apply(block, records)
        except CodecError as error:
            raise LogViolation("markers", str(error), int(block.base_offsets[0])) from None
        for key, packed in changes.items():
            self._put(key, packed)
        batch = 0
        for index, record in checked:
            at = int(records.batches[index])
            if not goes_on[batch + 1 : at + 1].all():
                self._history.end_write(self._has_offsets)
            batch = at
            start = int(records.key_starts[index])
            key = records.data[start : start + int(records.key_lengths[index])]
            self._history.apply(record, int(records.offsets[index]), key)
        if not goes_on[batch + 1 :].all():
            self._history.end_write(self._has_offsets)
        self._count(block)

    def _find_continued(self, block: BatchColumns) -> BoolArray:
        """Whether a batch belongs to the same write as the batch before it."""
        plain = ~block.are_transactional
        times, sizes = block.max_timestamps, block.sizes
        goes_on = np.zeros(len(block.starts), dtype=bool)
        goes_on[1:] = (
            (plain[1:] & plain[:-1])
            & (times[1:] == times[:-1])
            & (sizes[1:] + sizes[:-1] > _WRITE_BATCH_BYTES)
        )
        if self._last_write is not None:
            size, time, is_plain = self._last_write
            same = is_plain and bool(plain[0]) and time == int(times[0])
            goes_on[0] = same and size + int(sizes[0]) > _WRITE_BATCH_BYTES
        self._last_write = int(sizes[-1]), int(times[-1]), bool(plain[-1])
        return goes_on

    def _count(self, block: BatchColumns) -> None:
        report = self.report
        first = int(block.base_offsets[0])
        report.missing_offsets += first - report.next_offset
        spans = block.last_offsets - block.base_offsets + 1
        between = block.base_offsets[1:] - block.last_offsets[:-1] - 1
        report.missing_offsets += int((spans - block.counts).sum()) + int(between.sum())
        report.batches += len(block.starts)
        report.records += int(block.counts.sum())
        report.bytes += int(block.sizes.sum())
        report.next_offset = int(block.last_offsets[-1]) + 1
        if self._dense_from is not None:
            own_times = block.max_timestamps[block.base_offsets >= self._dense_from]
            self._last_time = max(self._last_time, int(own_times.max(initial=-1)))

    def finish(self) -> None:
        """Check what only the end of the partition can tell."""
        self._history.finish(self._has_offsets)
        groups = {read_group_id(prefix) for prefix in self._offsets}
        self.report.groups = len(groups | self._history.group_ids())

    # ---------------------------------------------------------------------------------- state

    def _put(self, key: bytes, packed: bytes | None) -> None:
        if key[:2] != _OFFSET_TYPE:
            found = self._others
        else:
            prefix = _compute_group_prefix(key)
            found = self._offsets.setdefault(prefix, {})
            if packed is None and len(found) <= 1:
                found.pop(key, None)
                if not found:
                    del self._offsets[prefix]
                return
        if packed is None:
            found.pop(key, None)
        else:
            found[key] = packed

    def _has_offsets(self, group_id: GroupId, before: int) -> bool:
        name = group_id.encode("utf-8", "replace")
        found = self._offsets.get(_OFFSET_TYPE + len(name).to_bytes(2, "big") + name, {})
        return any(unpack_latest(key, packed).offset < before for key, packed in found.items())

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Record keys, and the entries that ``latest`` must have for them."""
        yield from self._others.items()
        for found in self._offsets.values():
            yield from found.items()

    def compute_latest_offsets(self) -> dict[bytes, int]:
        """The offset of each key's current record, by its key in ``latest``."""
        return {key: unpack_latest(key, packed).offset for key, packed in self.items()}

    def compute_pending(self) -> dict[tuple[int, bytes], bytes]:
        """The entries that ``pending`` must have, by producer id and record key."""
        return self._fold.pending()

    def compute_pending_offsets(self) -> dict[tuple[int, bytes], int]:
        """The offset of each pending record, by producer id and record key."""
        pending = self.compute_pending().items()
        return {
            (number, key): unpack_latest(key, packed).offset for (number, key), packed in pending
        }

    # ---------------------------------------------------------------------------- comparisons

    def compare_latest(self, stored: Iterable[LatestEntry]) -> None:
        """Raise ``LogViolation`` unless these are the entries that the log leads to."""
        left = dict(self.items())
        for entry in stored:
            packed = left.pop(entry.key, None)
            if packed is None:
                raise LogViolation(
                    "latest", "the log has no record for this entry", entry.offset, entry.key
                )
            wanted = unpack_latest(entry.key, packed)
            if wanted != entry:
                why = _describe_difference(wanted, entry)
                raise LogViolation("latest", why, wanted.offset, entry.key)
        if left:
            first = min(left, key=lambda key: unpack_latest(key, left[key]).offset)
            offset = unpack_latest(first, left[first]).offset
            raise LogViolation("latest", "the last record of a key has no entry", offset, first)

    def compare_pending(self, stored: Iterable[tuple[int, LatestEntry]]) -> None:
        """The same for the offsets of open transactions."""
        left = self.compute_pending()
        for producer_id, entry in stored:
            packed = left.pop((producer_id, entry.key), None)
            if packed is None:
                why = f"no offset of producer id {producer_id} is pending for this key"
                raise LogViolation("pending", why, entry.offset, entry.key)
            wanted = unpack_latest(entry.key, packed)
            if wanted != entry:
                why = _describe_difference(wanted, entry)
                raise LogViolation("pending", why, wanted.offset, entry.key)
        for (producer_id, key), packed in sorted(left.items()):
            why = f"a pending offset of producer id {producer_id} has no entry"
            raise LogViolation("pending", why, unpack_latest(key, packed).offset, key)


def _describe_difference(wanted: LatestEntry, found: LatestEntry) -> str:
    if wanted.offset != found.offset:
        return f"the entry has offset {found.offset}, the log {wanted.offset}"
    if wanted.timestamp != found.timestamp:
        return f"the entry has timestamp {found.timestamp}, the log {wanted.timestamp}"
    return "the value of the entry differs from the log's"


def _compute_group_prefix(key: bytes) -> bytes:
    return key[: 4 + int.from_bytes(key[2:4], "big")]
