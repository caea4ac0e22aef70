"""Encodes repeated offset commits of one group in one topic: everything but the numbers is kept.

The bytes equal those of ``hot`` and ``batches`` (a property test checks it). A commit of one offset
without metadata, alone in its batch, is packed in one piece. A batch of many offsets is a matrix
with one record per row: a template in which the columns of numbers are filled in.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import crc32c
import numpy as np
from numpy.typing import NDArray

from model.ids import TopicId
from model.log.commit_records import OffsetColumns, OffsetCommits, to_ints
from model.log.records import OffsetCommitValue
from storage.codec.batches import BODY_HEAD, LENGTH_OFFSET, MAGIC, PREFIX
from storage.codec.hot import encode_offset_key_prefix, encode_offset_value
from storage.codec.wire import INT32, encode_zigzag

_VERSION: Final = 4
_NO_METADATA: Final = 1
_NUMBERS: Final = "hqibq"
"""Version, offset, leader epoch, metadata length, commit timestamp."""
_TOPIC_ID_TAG: Final = b"\x01\x00\x10"
_VALUE: Final = struct.Struct(f">{_NUMBERS}19s")
"""A value without metadata: the numbers, and the tagged topic id."""

_DELTA_STARTS: Final = tuple(1 << 7 * size - 1 for size in range(1, 5))
"""The first offset deltas that take two, three, four and five bytes (an int32 takes no more)."""

Bytes: TypeAlias = NDArray[np.uint8]


class _Part(NamedTuple):
    """The template of the records ``start`` to ``end`` of a batch.

    ``matrix`` has a record per row, ``numbers`` is the dtype of a row whose fields are those of
    its value that differ, and ``value_at`` is where its value begins.
    """

    start: int
    end: int
    matrix: Bytes
    numbers: np.dtype[Any]
    value_at: int


class CommitEncoder:
    """Encodes records of type 1, v4. Leader epochs are -1 for none. Batches have no metadata."""

    __slots__ = (
        "_head",
        "_kept_keys",
        "_kept_parts",
        "_key_length",
        "_length",
        "_pack_body",
        "_pack_value",
        "_prefix",
        "_tail",
        "_value_at",
        "_value_end",
        "_value_length",
        "_value_size",
        "size",
    )

    def __init__(self, group: str, topic: str, topic_id: TopicId) -> None:
        self._prefix = encode_offset_key_prefix(group, topic)
        self._tail = _TOPIC_ID_TAG + topic_id
        self._pack_value = _VALUE.pack
        # Attributes, timestamp delta 0, offset delta 0, then the key up to its partition.
        self._key_length = encode_zigzag(len(self._prefix) + INT32.size)
        body = b"\x00\x00\x00" + self._key_length + self._prefix
        self._value_size = _VALUE.size
        self._value_length = encode_zigzag(_VALUE.size)
        # The header count follows the value.
        record_size = len(body) + INT32.size + len(self._value_length) + _VALUE.size + 1
        self._head = encode_zigzag(record_size) + body
        batch = struct.Struct(
            f"{BODY_HEAD.format}{len(self._head)}si{len(self._value_length)}s"
            f"{_NUMBERS}{len(self._tail)}sx"
        )
        self._pack_body = batch.pack
        self._length = PREFIX.size + batch.size - LENGTH_OFFSET
        self._value_end = batch.size - 1
        self._value_at = self._value_end - _VALUE.size
        self._kept_keys: Sequence[bytes] = ()
        self._kept_parts: list[_Part] = []
        self.size = PREFIX.size + batch.size
        """The size of a batch with one commit."""

    def encode_key(self, partition: int) -> bytes:
        """The record key of a partition."""
        return self._prefix + INT32.pack(partition)

    def encode_value(self, offset: int, leader_epoch: int, commit_timestamp: int) -> bytes:
        """The value of one offset."""
        return self._pack_value(
            _VERSION, offset, leader_epoch, _NO_METADATA, commit_timestamp, self._tail
        )

    def encode_pairs(
        self, columns: OffsetColumns, commit_timestamp: int
    ) -> Iterable[tuple[bytes, bytes]]:
        """The record key and value of each row. Metadata are not encoded: a ticket takes none."""
        if len(columns.partitions) == 1:
            value = self.encode_value(
                columns.offsets[0], columns.leader_epochs[0], commit_timestamp
            )
            return ((self.encode_key(columns.partitions[0]), value),)
        keys = columns.keys or self.encode_keys(to_ints(columns.partitions))
        return _encode_plain(keys, columns, commit_timestamp, self._tail)

    def encode_batch(
        self, base_offset: int, wall_ms: int, columns: OffsetColumns, commit_timestamp: int
    ) -> tuple[bytes, bytes]:
        """A batch of the one offset in ``columns``, and its value."""
        body = self._pack_body(
            0, 0, wall_ms, wall_ms, -1, -1, 0, 1,
            self._head, columns.partitions[0], self._value_length,
            _VERSION, columns.offsets[0], columns.leader_epochs[0], _NO_METADATA, commit_timestamp,
            self._tail,
        )  # fmt: skip
        head = PREFIX.pack(base_offset, self._length, 0, MAGIC, crc32c.crc32c(body))
        return head + body, body[self._value_at : self._value_end]

    def encode_rows(
        self, base_offset: int, wall_ms: int, columns: OffsetColumns, commit_timestamp: int
    ) -> tuple[bytes, list[Bytes]]:
        """A batch with a record per row, and the values as rows, in one part or several."""
        records: list[bytes] = []
        values: list[Bytes] = []
        for part in self._find_parts(columns):
            matrix = part.matrix.copy()
            rows = matrix.reshape(-1).view(part.numbers)
            rows["offset"] = columns.offsets[part.start : part.end]
            rows["leader_epoch"] = columns.leader_epochs[part.start : part.end]
            rows["timestamp"] = commit_timestamp
            records.append(matrix.tobytes())
            values.append(matrix[:, part.value_at : part.value_at + self._value_size])
        count = len(columns.partitions)
        body = b"".join(
            [BODY_HEAD.pack(0, count - 1, wall_ms, wall_ms, -1, -1, 0, count), *records]
        )
        length = PREFIX.size + len(body) - LENGTH_OFFSET
        return PREFIX.pack(base_offset, length, 0, MAGIC, crc32c.crc32c(body)) + body, values

    def _find_parts(self, columns: OffsetColumns) -> list[_Part]:
        """The template of these rows; the last one is kept, if the caller repeats its commits."""
        keys = columns.keys
        if keys and keys is self._kept_keys:
            return self._kept_parts
        partitions = np.asarray(columns.partitions, ">i4")
        count = len(partitions)
        starts = (0, *(start for start in _DELTA_STARTS if start < count))
        parts = [
            self._make_part(partitions, start, end) for start, end in pairwise((*starts, count))
        ]
        if keys:
            self._kept_keys, self._kept_parts = keys, parts
        return parts

    def _make_part(self, partitions: NDArray[np.int32], start: int, end: int) -> _Part:
        """The records of rows whose offset deltas have the same encoded length, without numbers."""
        partitions = partitions[start:end]
        count = len(partitions)
        delta = encode_zigzag(start)
        body = b"\x00\x00%b%b%b" % (delta, self._key_length, self._prefix)
        size = len(body) + INT32.size + len(self._value_length) + self._value_size + 1
        head = encode_zigzag(size) + body
        matrix = np.zeros((count, len(head) + size - len(body)), np.uint8)
        matrix[:, : len(head)] = np.frombuffer(head, np.uint8)
        at = len(head) - len(body) + 2
        zigzag = 2 * np.arange(start, start + count, dtype=np.int64)
        for index in range(len(delta)):
            is_last = index == len(delta) - 1
            matrix[:, at + index] = zigzag >> 7 * index & 0x7F | (0 if is_last else 0x80)
        at = len(head)
        matrix[:, at : at + 4] = np.ascontiguousarray(partitions).view(np.uint8).reshape(-1, 4)
        at += 4
        matrix[:, at : at + len(self._value_length)] = np.frombuffer(self._value_length, np.uint8)
        at += len(self._value_length)
        value = np.frombuffer(self.encode_value(0, -1, 0), np.uint8)
        matrix[:, at : at + self._value_size] = value
        numbers = np.dtype(
            {
                "names": ["offset", "leader_epoch", "timestamp"],
                "formats": [">i8", ">i4", ">i8"],
                "offsets": [at + 2, at + 10, at + 15],
                "itemsize": matrix.shape[1],
            }
        )
        return _Part(start, end, matrix, numbers, at)

    def encode_keys(self, partitions: Iterable[int]) -> list[bytes]:
        """The record keys of many partitions."""
        pack, prefix = INT32.pack, self._prefix
        return [prefix + pack(partition) for partition in partitions]


def encode_commit_pairs(commits: OffsetCommits) -> Iterable[tuple[bytes, bytes]]:
    """The record key and value of each row."""
    columns, topic_id, timestamp = commits.offsets, commits.topic_id, commits.commit_timestamp
    tail = _TOPIC_ID_TAG + topic_id
    pack = _VALUE.pack
    prefix = encode_offset_key_prefix(commits.group, commits.topic)
    # A commit may name very many topics with one partition each.
    if len(columns.partitions) == 1:
        (partition,), (offset,), (leader_epoch,), metadata, _ = columns
        value = (
            _encode_with_metadata(offset, leader_epoch, metadata[0], timestamp, topic_id)
            if metadata
            else pack(_VERSION, offset, leader_epoch, _NO_METADATA, timestamp, tail)
        )
        return ((prefix + INT32.pack(partition), value),)
    keys = [prefix + INT32.pack(number) for number in columns.partitions]
    if not columns.metadata:
        return _encode_plain(keys, columns, timestamp, tail)
    return [
        (
            key,
            _encode_with_metadata(offset, leader_epoch, metadata, timestamp, topic_id)
            if metadata
            else pack(_VERSION, offset, leader_epoch, _NO_METADATA, timestamp, tail),
        )
        for key, (_, offset, leader_epoch, metadata) in zip(keys, columns.rows(), strict=True)
    ]


def _encode_plain(
    keys: Iterable[bytes], columns: OffsetColumns, timestamp: int, tail: bytes
) -> list[tuple[bytes, bytes]]:
    pack = _VALUE.pack
    rows = zip(keys, to_ints(columns.offsets), to_ints(columns.leader_epochs), strict=True)
    return [
        (key, pack(_VERSION, offset, leader_epoch, _NO_METADATA, timestamp, tail))
        for key, offset, leader_epoch in rows
    ]


def _encode_with_metadata(
    offset: int, leader_epoch: int, metadata: str, timestamp: int, topic_id: TopicId
) -> bytes:
    value = encode_offset_value(
        OffsetCommitValue(offset, leader_epoch, metadata, timestamp, topic_id=topic_id)
    )
    assert value is not None, "the value has no unknown tags"
    return value
