"""Generates stores as heavy traffic and a kill would leave them.

    python -m bench.stores commits FOLDER --records 7600000
    python -m bench.stores offsets FOLDER --groups 10000 --partitions 100
    python -m bench.stores members FOLDER --members 100000

Writes batches and their `latest` entries directly to the store. The process ends without closing
it, so that the next one finds a write-ahead log, as after a kill.
"""

from __future__ import annotations

import argparse
import os
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import crc32c
import numpy as np

from coordinator.core.state.metadata_hash import compute_metadata_hash
from model.ids import (
    GroupId,
    LogOffset,
    LogPartition,
    MemberId,
    TopicId,
    TopicName,
    compute_log_partition,
)
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
    TopicPartitions,
)
from model.log.side_records import SideRecord, TopicSideKey, TopicSideValue
from model.topics import Topic, TopicImage, compute_image_with
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key, encode_value
from storage.log_store import LogStore, PartitionAppend, StoreStalled, pack_latest
from storage.rocks.rocks_opening import open_store
from storage.side_codec import encode_side

LOG_PARTITIONS = 50
COMMIT_PARTITIONS = 1000
TOPIC = TopicName("bench-recovery")
TOPIC_ID = TopicId(bytes(range(16)))
MEMBERS_PER_GROUP = 100
PARTITIONS_PER_MEMBER = 10
EPOCH = 101
STALL_PAUSE_S = 0.02
SYNC_EVERY = 200
"""Batches between two syncs, each of which moves the watermark."""

_INT64 = struct.Struct(">q")
_MARK = 0x7E57_0FF5_E700_0000
"""A value that occurs nowhere else in a batch, to be found and replaced."""

_MARK_TIME = 0x7E57_0000_71AE_0000
_BASE_OFFSET_AT = 0
_CRC_AT = 17
_CRC_START = 21
_TIMES_AT = 27


class StoreMaker:
    """Appends to a store and syncs it periodically."""

    def __init__(self, folder: Path) -> None:
        self.store: LogStore = open_store(folder, partitions=LOG_PARTITIONS)
        self._unsynced: dict[LogPartition, LogOffset] = {}
        self._batches = 0

    def append(
        self, partition: LogPartition, batch: bytes, count: int, latest: dict[bytes, bytes | None]
    ) -> None:
        """Append one batch, which must begin at the next offset of its partition."""
        base_offset = self.store.next_offset(partition)
        append = PartitionAppend(partition, base_offset, batch, count, latest)
        while not self._try_write(append):
            time.sleep(STALL_PAUSE_S)
        self._unsynced[partition] = LogOffset(base_offset + count)
        self._batches += 1
        if self._batches % SYNC_EVERY == 0:
            self.sync()

    def _try_write(self, append: PartitionAppend) -> bool:
        """Whether the store accepted the write; it may be stalled."""
        try:
            self.store.write([append])
        except StoreStalled:
            return False
        return True

    def sync(self) -> None:
        """Sync what was appended, and mark it as durable."""
        self.store.sync()
        self.store.mark_durable(self._unsynced)
        self.store.sync_watermark()
        self._unsynced = {}


class CommitTemplate:
    """A template: the batch of one commit of a group for all partitions of a topic."""

    def __init__(self, group: GroupId, partitions: int) -> None:
        self.partition = compute_log_partition(group, LOG_PARTITIONS)
        self.count = partitions
        records = []
        for number in range(partitions):
            value = OffsetCommitValue(_MARK + number, 0, "", _MARK_TIME, topic_id=TOPIC_ID)
            records.append((encode_key(OffsetCommitKey(group, TOPIC, number)), encode_value(value)))
        self.keys = [key for key, _ in records]
        self._value_size = len(records[0][1])
        batch = encode_batch(0, records, 0)
        at = [batch.index(_INT64.pack(_MARK + number)) for number in range(partitions)]
        self._starts = [position - 2 for position in at]
        self._bytes = np.frombuffer(batch, np.uint8).copy()
        span = np.arange(8)
        self._offsets_at = np.array(at)[:, None] + span
        time_at = batch.index(_INT64.pack(_MARK_TIME)) - at[0]
        self._times_at = self._offsets_at + time_at

    def fill(self, base_offset: int, offset: int, time_ms: int) -> bytes:
        """The batch at its base offset, with each partition committed at about ``offset``."""
        data = self._bytes
        offsets = np.arange(offset, offset + self.count, dtype=">i8")
        data[self._offsets_at] = offsets.view(np.uint8).reshape(self.count, 8)
        times = np.frombuffer(_INT64.pack(time_ms), np.uint8)
        data[self._times_at] = times
        data[_BASE_OFFSET_AT : _BASE_OFFSET_AT + 8] = np.frombuffer(
            _INT64.pack(base_offset), np.uint8
        )
        data[_TIMES_AT : _TIMES_AT + 16] = np.concatenate((times, times))
        crc = struct.pack(">I", crc32c.crc32c(memoryview(data)[_CRC_START:]))
        data[_CRC_AT : _CRC_AT + 4] = np.frombuffer(crc, np.uint8)
        return data.tobytes()

    def latest(self, batch: bytes, base_offset: int, time_ms: int) -> dict[bytes, bytes | None]:
        """The `latest` entries of the batch."""
        size = self._value_size
        return {
            key: pack_latest(base_offset + index, time_ms, batch[start : start + size])
            for index, (key, start) in enumerate(zip(self.keys, self._starts, strict=True))
        }


def make_commits(
    folder: Path, *, records: int, groups: int = 10, partitions: int = COMMIT_PARTITIONS
) -> None:
    """Groups without members that committed all partitions of a topic repeatedly.

    Only the last rounds of a long history are written to `latest`: later ones overwrite the rest.
    """
    maker = StoreMaker(folder)
    maker.store.write([], [make_topic_record(partitions)])
    templates = [CommitTemplate(GroupId(f"commits-{n}"), partitions) for n in range(groups)]
    rounds = max(1, records // (groups * partitions))
    now_ms = time.time_ns() // 1_000_000
    for number in range(rounds):
        time_ms = now_ms - (rounds - number)
        for template in templates:
            base_offset = maker.store.next_offset(template.partition)
            batch = template.fill(base_offset, number * 100, time_ms)
            is_late = number >= rounds - 200
            latest = template.latest(batch, base_offset, time_ms) if is_late else {}
            maker.append(template.partition, batch, partitions, latest)
    maker.sync()


def make_offsets(folder: Path, *, groups: int, partitions: int) -> None:
    """Many groups without members, each with an offset for every partition of a topic."""
    maker = StoreMaker(folder)
    maker.store.write([], [make_topic_record(partitions)])
    now_ms = time.time_ns() // 1_000_000
    for number in range(groups):
        template = CommitTemplate(GroupId(f"offsets-{number}"), partitions)
        base_offset = maker.store.next_offset(template.partition)
        batch = template.fill(base_offset, number, now_ms)
        latest = template.latest(batch, base_offset, now_ms)
        maker.append(template.partition, batch, partitions, latest)
    maker.sync()


def make_members(folder: Path, *, members: int) -> None:
    """Settled groups of a hundred members, each with ten partitions of one topic."""
    maker = StoreMaker(folder)
    partitions = MEMBERS_PER_GROUP * PARTITIONS_PER_MEMBER
    maker.store.write([], [make_topic_record(partitions)])
    image = compute_image_with(TopicImage(), Topic(TOPIC, TOPIC_ID, partitions))
    metadata_hash = compute_metadata_hash((TOPIC,), image, {})
    now_ms = time.time_ns() // 1_000_000
    for number in range(max(1, members // MEMBERS_PER_GROUP)):
        group = GroupId(f"members-{number}")
        partition = compute_log_partition(group, LOG_PARTITIONS)
        base_offset = maker.store.next_offset(partition)
        pairs = [
            (encode_key(record.key), encode_value(record.value))
            for record in make_group(group, metadata_hash, now_ms)
            if record.value is not None
        ]
        batch = encode_batch(base_offset, pairs, now_ms)
        latest: dict[bytes, bytes | None] = {
            key: pack_latest(base_offset + index, now_ms, value)
            for index, (key, value) in enumerate(pairs)
        }
        maker.append(partition, batch, len(pairs), latest)
    maker.sync()


def make_group(group: GroupId, metadata_hash: int, now_ms: int) -> Iterator[Record]:
    """The records of a settled group."""
    yield Record(ConsumerGroupMetadataKey(group), ConsumerGroupMetadataValue(EPOCH, metadata_hash))
    yield Record(
        ConsumerGroupTargetAssignmentMetadataKey(group),
        ConsumerGroupTargetAssignmentMetadataValue(EPOCH, now_ms),
    )
    metadata = ConsumerGroupMemberMetadataValue(
        None, None, "bench", "/127.0.0.1", (TOPIC,), "", 300_000, None
    )
    for number in range(MEMBERS_PER_GROUP):
        member = MemberId(f"{group}-{number:06d}".ljust(22, "x")[:22])
        first = number * PARTITIONS_PER_MEMBER
        owned = tuple(range(first, first + PARTITIONS_PER_MEMBER))
        yield Record(ConsumerGroupMemberMetadataKey(group, member), metadata)
        yield Record(
            ConsumerGroupTargetAssignmentMemberKey(group, member),
            ConsumerGroupTargetAssignmentMemberValue((TopicPartitions(TOPIC_ID, owned),)),
        )
        epochs = (EPOCH,) * PARTITIONS_PER_MEMBER
        yield Record(
            ConsumerGroupCurrentMemberAssignmentKey(group, member),
            ConsumerGroupCurrentMemberAssignmentValue(
                EPOCH, EPOCH - 1, 0, (AssignedTopicPartitions(TOPIC_ID, owned, epochs),), ()
            ),
        )


def make_topic_record(partitions: int) -> tuple[bytes, bytes | None]:
    """The topic that all groups use."""
    return encode_side(SideRecord(TopicSideKey(TOPIC), TopicSideValue(TOPIC_ID, partitions)))


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    match options.kind:
        case "commits":
            make_commits(options.folder, records=options.records)
        case "offsets":
            make_offsets(options.folder, groups=options.groups, partitions=options.partitions)
        case "members":
            make_members(options.folder, members=options.members)
    sys.stdout.flush()
    os._exit(0)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.stores", description="Makes large stores.")
    parser.add_argument("kind", choices=("commits", "offsets", "members"))
    parser.add_argument("folder", type=Path, help="the store's folder, which must be new")
    parser.add_argument("--records", type=int, default=7_600_000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--members", type=int, default=100_000)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
