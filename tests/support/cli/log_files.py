"""Logs for the tests of `muster log`: golden segments, a store of them, and a command runner."""

from __future__ import annotations

from pathlib import Path

from model.ids import GroupId, LogOffset, LogPartition, TopicName
from model.log.records import OffsetCommitKey, OffsetCommitValue
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key, encode_value
from storage.log.fold import PartitionFold
from storage.log_store import PartitionAppend, pack_latest, read_batch_range
from storage.rocks.rocks_opening import open_store
from storage.segments.folder import open_segments
from tests.groups import CHECKOUT
from tests.support.cli.invoking import Result, invoke_app

SEGMENTS = CHECKOUT / "tests" / "golden" / "segments"


def invoke(*arguments: str | Path) -> Result:
    """Runs `muster log` with arguments."""
    return invoke_app("log", *arguments)


def make_store(folder: Path) -> None:
    """A store with the batches of the golden segments and their latest records."""
    segments = open_segments(SEGMENTS)
    store = open_store(folder, partitions=segments.partition_count)
    for partition in segments.partitions:
        batches = [batch.data for batch in segments.read(partition)]
        fold = PartitionFold()
        for batch in batches:
            fold.apply(batch)
        latest = {
            entry.key: pack_latest(entry.offset, entry.timestamp, entry.value)
            for entry in fold.latest.values()
        }
        appends = []
        for index, batch in enumerate(batches):
            base_offset, count = read_batch_range(batch)
            is_last = index == len(batches) - 1
            appends.append(
                PartitionAppend(
                    partition, LogOffset(base_offset), batch, count, latest if is_last else {}
                )
            )
        store.write(appends)
    store.close()


def encode_commits(base_offset: int, group: str, *commits: tuple[str, int, int]) -> bytes:
    """A batch of one group's commits: topic, partition and offset of each."""
    records = [
        (
            encode_key(OffsetCommitKey(GroupId(group), TopicName(topic), partition)),
            encode_value(OffsetCommitValue(offset, 3, "note", 1_700_000_000_123)),
        )
        for topic, partition, offset in commits
    ]
    return encode_batch(base_offset, records, 1_700_000_000_123)


def write_segment(folder: Path, partition: LogPartition | int, *batches: bytes) -> Path:
    """A segment of a partition below a folder."""
    path = folder / f"__consumer_offsets-{partition}" / f"{0:020}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(batches))
    return path
