"""Extraction of one group's committed offsets from a shared log, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from model.ids import GroupId, LogOffset, TopicId, TopicName
from model.log.records import OffsetCommitKey, OffsetCommitValue
from model.value import value
from storage.codec.batches import (
    HEADER_SIZE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Batch,
    BatchRecord,
    decode_batch,
    read_batch_header,
)
from storage.codec.errors import CodecError
from storage.codec.record_codec import decode_key, decode_value, read_type
from storage.log.compression import decompress
from storage.log.fold import PartitionFold
from storage.log_store import LatestEntry

_OFFSET_TYPES = (b"\x00\x00", b"\x00\x01")


@value
class GroupOffset:
    """A committed offset of a group; timestamps in wall-clock ms.

    ``log_offset`` is the offset of its record in the log; ``leader_epoch`` is -1 if unset.
    """

    topic: TopicName
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: TopicId
    log_offset: LogOffset


class GroupOffsetsFold:
    """Folds the batches of a partition, in order, into one group's committed offsets.

    Applies the rules of ``PartitionFold``; batches without the group's key are not decoded.
    """

    def __init__(self, group_id: GroupId) -> None:
        self._group = compute_group_part(group_id)
        self._prefixes = tuple(kind + self._group for kind in _OFFSET_TYPES)
        self._fold = PartitionFold()

    def apply(self, batch: bytes) -> None:
        """Apply one RecordBatch v2; raises ``CodecError`` if it is damaged."""
        header = read_batch_header(batch)
        if not header.is_control and not header.compression and self._group not in batch:
            return
        decoded = decode_batch(batch, decompress=decompress)
        if not decoded.is_control:
            records = tuple(record for record in decoded.records if self.concerns(record.key))
            decoded = replace(decoded, records=records)
        self._fold.apply_batch(decoded)

    def apply_committed(self, record: BatchRecord) -> None:
        """Apply one record as a read_committed consumer receives it, without its batch."""
        if self.concerns(record.key):
            self._fold.apply_batch(_compute_plain_batch(record))

    def concerns(self, key: bytes | None) -> bool:
        """Whether a record with this key sets or deletes an offset of the group."""
        return key is not None and key.startswith(self._prefixes)

    def compute_offsets(self) -> list[GroupOffset]:
        """The committed offsets after all batches so far, sorted by topic and partition."""
        return compute_group_offsets(self._fold.latest.values())

    @property
    def pending_count(self) -> int:
        """The number of offsets pending in open transactions."""
        return sum(map(len, self._fold.pending.values()))


def compute_group_part(group_id: GroupId) -> bytes:
    """The bytes that follow the record type in every key of the group: id length and id."""
    name = group_id.encode("utf-8", "surrogatepass")
    return len(name).to_bytes(2, "big") + name


def compute_offset_prefix(group_id: GroupId) -> bytes:
    """The prefix of the keys of the group's committed offsets in ``latest``."""
    return _OFFSET_TYPES[1] + compute_group_part(group_id)


def compute_group_offsets(entries: Iterable[LatestEntry]) -> list[GroupOffset]:
    """Decode offset entries of ``latest``, sorted by topic and partition.

    Raises ``CodecError`` for damaged entries and unknown versions.
    """
    offsets = [_compute_group_offset(entry) for entry in entries]
    return sorted(offsets, key=lambda found: (found.topic, found.partition))


def _compute_group_offset(entry: LatestEntry) -> GroupOffset:
    key = decode_key(entry.key)
    version, commit = decode_value(read_type(entry.key), entry.value)
    if not isinstance(key, OffsetCommitKey) or not isinstance(commit, OffsetCommitValue):
        raise CodecError(f"the offset at log offset {entry.offset} has unknown version {version}")
    return GroupOffset(
        key.topic,
        key.partition,
        commit.offset,
        commit.leader_epoch,
        commit.metadata,
        commit.commit_timestamp,
        commit.expire_timestamp,
        commit.topic_id,
        entry.offset,
    )


def _compute_plain_batch(record: BatchRecord) -> Batch:
    producer = NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE
    times = record.timestamp, record.timestamp
    offsets = record.offset, record.offset
    return Batch(*offsets, HEADER_SIZE, 0, 0, 0, *times, *producer, 1, (record,))
