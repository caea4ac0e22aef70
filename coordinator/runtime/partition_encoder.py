"""Records of one log partition made into batches, and into what they do to ``latest``."""

from __future__ import annotations

from model.ids import LogOffset, LogPartition
from model.records import OffsetCommits, Record
from storage.codec.batches import HEADER_SIZE, encode_batch
from storage.codec.hot import encode_commit_values
from storage.codec.records import encode_key, encode_value
from storage.log_store import PartitionAppend, pack_latest

BATCH_BYTES_MAX = 1 << 20
RECORDS_BYTES_MAX = BATCH_BYTES_MAX - HEADER_SIZE
RECORD_OVERHEAD_MAX = 21
"""Lengths, deltas, attributes and the count of headers, beside a record's key and value."""


class PartitionEncoder:
    """Takes records in their order; a batch is at most 1 MiB, but for one record that is larger."""

    __slots__ = (
        "_appends",
        "_first",
        "_latest",
        "_offset",
        "_pairs",
        "_partition",
        "_size",
        "_wall_ms",
    )

    def __init__(self, partition: LogPartition, first: LogOffset, wall_ms: int) -> None:
        self._partition = partition
        self._first: int = first
        self._offset: int = first
        self._wall_ms = wall_ms
        self._size = 0
        self._pairs: list[tuple[bytes, bytes | None]] = []
        self._latest: dict[bytes, bytes | None] = {}
        self._appends: list[PartitionAppend] = []

    def add_record(self, record: Record) -> None:
        """One record, or tombstone."""
        key = encode_key(record.key)
        if record.value is None:
            self._make_room(len(key) + RECORD_OVERHEAD_MAX)
            self._pairs.append((key, None))
            # Of the core's own keys none is a legacy one: a key is its own key in ``latest``.
            self._latest[key] = None
            self._offset += 1
        else:
            self._add(key, encode_value(record.value))

    def add_commits(self, commits: OffsetCommits) -> None:
        """One record for each offset."""
        for key, value in encode_commit_values(commits):
            self._add(key, value)

    def _add(self, key: bytes, value: bytes) -> None:
        added = len(key) + len(value) + RECORD_OVERHEAD_MAX
        size = self._size + added
        if size > RECORDS_BYTES_MAX and self._pairs:
            self._cut()
            size = added
        self._size = size
        self._pairs.append((key, value))
        self._latest[key] = pack_latest(self._offset, self._wall_ms, value)
        self._offset += 1

    def _make_room(self, size: int) -> None:
        if self._size + size > RECORDS_BYTES_MAX and self._pairs:
            self._cut()
        self._size += size

    def _cut(self) -> None:
        batch = encode_batch(self._first, self._pairs, self._wall_ms)
        self._appends.append(
            PartitionAppend(
                self._partition, LogOffset(self._first), batch, len(self._pairs), self._latest
            )
        )
        self._first, self._pairs, self._latest, self._size = self._offset, [], {}, 0

    def finish(self) -> list[PartitionAppend]:
        """What is to be written, in the order of offsets."""
        self._cut()
        return self._appends
