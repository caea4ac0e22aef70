"""Verification of a store: its log, and the state beside it, which must follow from the log."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from model.ids import GroupId, LogOffset, LogPartition, compute_log_partition
from storage.causes_codec import decode_rebalance
from storage.codec.batches import check_crc, read_batch_header
from storage.codec.errors import CodecError
from storage.columnar.batch_columns import BatchColumns, check_crcs, read_batch_columns
from storage.log.trim import (
    NO_HISTORY_START,
    HistoryStart,
    decode_history_start,
    is_kept_record,
    pack_kept_records,
)
from storage.log_store import LatestEntry, StoreError
from storage.offset_changes_codec import CHANGES_PREFIX, decode_offset_change
from storage.side_codec import decode_side, encode_side
from storage.transfer.imported import UNKNOWN, Imported, read_imported
from storage.verify.block_checks import cut_batches
from storage.verify.partition import PartitionCheck
from storage.verify.violation import LogViolation, PartitionReport, Violation

BLOCK_BYTES = 4 << 20


class VerifiableStore(Protocol):
    """The parts of a store that verification reads."""

    @property
    def partitions(self) -> int:
        """The number of log partitions."""
        ...

    def log_entries(self, partition: LogPartition) -> Iterator[tuple[LogOffset, bytes]]:
        """The batches in offset order, with the offsets they are stored under."""
        ...

    def latest(self, partition: LogPartition) -> Iterator[LatestEntry]:
        """See ``LogStore``."""
        ...

    def pending(self, partition: LogPartition) -> Iterator[tuple[int, LatestEntry]]:
        """See ``LogStore``."""
        ...

    def kept(
        self, partition: LogPartition, key_prefix: bytes = b""
    ) -> Iterable[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        ...

    def side(self) -> Iterator[tuple[bytes, bytes]]:
        """See ``LogStore``."""
        ...

    def durable_offset(self, partition: LogPartition) -> LogOffset:
        """See ``LogStore``."""
        ...


def verify_side(store: VerifiableStore) -> Violation | None:
    """The first side record that does not decode, or not to the same bytes again."""
    try:
        for key, value in store.side():
            try:
                if encode_side(decode_side(key, value)) != (key, value):
                    return Violation(
                        None, None, key, "side", "encoding the decoded record gives other bytes"
                    )
            except CodecError as error:
                return Violation(None, None, key, "side", str(error))
    except StoreError as error:
        return Violation(None, None, None, "side", str(error))
    return None


def verify_causes(causes: Iterable[tuple[bytes, bytes]]) -> Violation | None:
    """The first rebalance, or change of offsets, that does not decode."""
    try:
        for key, value in causes:
            try:
                if key.startswith(CHANGES_PREFIX):
                    decode_offset_change(key, value)
                else:
                    decode_rebalance(key, value)
            except CodecError as error:
                return Violation(None, None, key, "causes", str(error))
    except StoreError as error:
        return Violation(None, None, None, "causes", str(error))
    return None


def verify_meta(meta: Mapping[bytes, bytes], cluster_id: str, partitions: int) -> Violation | None:
    """Whether the store's metadata agrees with the watermark beside it."""
    for key, wanted in ((b"cluster.id", cluster_id), (b"partitions", str(partitions))):
        found = meta.get(key)
        if found != wanted.encode():
            name = key.decode()
            why = f"the store has {name} {found!r}, its watermark {wanted!r}"
            return Violation(None, None, key, "meta", why)
    return None


def verify_store(store: VerifiableStore, *, with_groups: bool = True) -> Iterator[PartitionReport]:
    """Verify all partitions, each up to its first violation.

    ``with_groups`` enables the invariants of groups.
    """
    for number in range(store.partitions):
        yield verify_partition(store, LogPartition(number), with_groups=with_groups)


def verify_partition(
    store: VerifiableStore, partition: LogPartition, *, with_groups: bool = True
) -> PartitionReport:
    """Verify one partition, up to its first violation."""
    report = PartitionReport(partition)
    try:
        kept = dict(store.kept(partition))
        parts = _Parts(_read_start(kept), _read_imported(store, partition))
        check = PartitionCheck(
            partition,
            dense_from=max(parts.start.offset, parts.imported.end),
            check_group=partial(_find_misplaced, partition, store.partitions),
            with_groups=with_groups,
        )
        report = check.report
        _verify(store, partition, parts, kept, check)
    except LogViolation as error:
        report.violation = Violation(partition, error.offset, error.key, error.rule, error.why)
    except StoreError as error:
        report.violation = Violation(partition, report.next_offset, None, "store", str(error))
    return report


class _Parts(NamedTuple):
    start: HistoryStart
    imported: Imported


def _verify(
    store: VerifiableStore,
    partition: LogPartition,
    parts: _Parts,
    kept: Mapping[bytes, bytes],
    check: PartitionCheck,
) -> None:
    boundary = _Boundary(check, parts, kept)
    for block in _read_blocks(store.log_entries(partition)):
        boundary.apply(block)
    boundary.finish()
    check.finish()
    report = check.report
    durable = store.durable_offset(partition)
    if report.next_offset < durable:
        raise LogViolation(
            "watermark",
            f"the log ends at offset {report.next_offset}, but was acknowledged up to {durable}",
            report.next_offset,
        )
    check.compare_latest(store.latest(partition))
    check.compare_pending(store.pending(partition))


class _Boundary:
    """Checks the state at the history start, and the number of gaps in an import."""

    def __init__(self, check: PartitionCheck, parts: _Parts, kept: Mapping[bytes, bytes]) -> None:
        self._check = check
        self._parts = parts
        self._kept = kept
        self._stops: list[tuple[int, Callable[[], None]]] = sorted(
            (
                (int(parts.start.offset), self._check_start),
                (int(parts.imported.end), self._check_imported),
            ),
            key=lambda stop: stop[0],
        )

    def apply(self, block: BatchColumns) -> None:
        """Apply a block, split where a check is due."""
        while self._stops:
            at = int((block.base_offsets < self._stops[0][0]).sum())
            if at == len(block.starts):
                break
            if at:
                self._check.apply(cut_batches(block, 0, at))
                block = cut_batches(block, at, len(block.starts))
            self._stops.pop(0)[1]()
        self._check.apply(block)

    def finish(self) -> None:
        """Run the checks that are due at the end of the log."""
        for _, stop in self._stops:
            stop()
        self._stops.clear()

    def _check_start(self) -> None:
        wanted = {}
        if self._parts.start != NO_HISTORY_START:
            wanted = pack_kept_records(
                self._check.compute_latest_offsets(), self._check.compute_pending_offsets()
            )
        found = {key: packed for key, packed in self._kept.items() if is_kept_record(key)}
        if found != wanted:
            keys = found.keys() | wanted.keys()
            wrong = min(key for key in keys if found.get(key) != wanted.get(key))
            raise LogViolation(
                "history",
                "the records kept below the history start are not those that the log has "
                f"there: entry {wrong.hex()}",
                self._parts.start.offset,
            )
        if wanted and self._check.report.records != len(wanted):
            raise LogViolation(
                "history",
                f"{self._check.report.records} records precede the history start, "
                f"of which {len(wanted)} are current",
                self._parts.start.offset,
            )

    def _check_imported(self) -> None:
        imported, report = self._parts.imported, self._check.report
        if self._parts.start.offset or imported.missing_offsets == UNKNOWN:
            return
        missing = report.missing_offsets + imported.end - report.next_offset
        if imported.end and missing != imported.missing_offsets:
            raise LogViolation(
                "offsets",
                f"{missing} of the imported offsets have no record, "
                f"instead of {imported.missing_offsets}",
                imported.end,
            )


def _read_blocks(entries: Iterable[tuple[LogOffset, bytes]]) -> Iterator[BatchColumns]:
    """Blocks of intact batches, up to the first broken one, which raises ``LogViolation``."""
    held: list[tuple[LogOffset, bytes]] = []
    size = 0
    for entry in entries:
        held.append(entry)
        size += len(entry[1])
        if size >= BLOCK_BYTES:
            yield from _check_block(held)
            held, size = [], 0
    if held:
        yield from _check_block(held)


def _check_block(entries: Sequence[tuple[LogOffset, bytes]]) -> Iterator[BatchColumns]:
    batches = [batch for _, batch in entries]
    try:
        block = read_batch_columns(batches)
        check_crcs(block)
        is_whole = block.base_offsets.tolist() == [offset for offset, _ in entries]
    except CodecError:
        is_whole = False
    if is_whole:
        yield block
        return
    for index, (offset, batch) in enumerate(entries):
        try:
            _check_batch(offset, batch)
        except LogViolation:
            if index:
                yield read_batch_columns(batches[:index])
            raise


def _check_batch(offset: LogOffset, batch: bytes) -> None:
    """Check that the entry is exactly one batch, intact, with the entry's offset."""
    try:
        header = read_batch_header(batch)
        check_crc(batch, 0, header)
    except CodecError as error:
        raise LogViolation("crc", str(error), offset) from None
    if header.size != len(batch):
        why = f"{len(batch) - header.size} bytes follow the batch of {header.size} bytes"
        raise LogViolation("header", why, offset)
    if header.base_offset != offset:
        why = f"the batch stored under offset {offset} begins at {header.base_offset}"
        raise LogViolation("offsets", why, offset)


def _read_start(kept: Mapping[bytes, bytes]) -> HistoryStart:
    try:
        return decode_history_start(kept)
    except struct.error:
        raise LogViolation("history", "the history start cannot be read") from None


def _read_imported(store: VerifiableStore, partition: LogPartition) -> Imported:
    try:
        return read_imported(store, partition)
    except struct.error:
        raise LogViolation("history", "the entry of the import cannot be read") from None


def _find_misplaced(partition: LogPartition, partitions: int, group: GroupId) -> str | None:
    belongs = compute_log_partition(group, partitions)
    if belongs == partition:
        return None
    return f"group {group!r} belongs in partition {belongs} of {partitions}"
