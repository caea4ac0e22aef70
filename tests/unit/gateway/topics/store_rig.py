"""A topic store over a coordinator that only has topics, and record batches to put into it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from coordinator.runtime.loop.slices import run_at_once
from gateway.topics.local_topics import LocalTopics
from gateway.topics.log.partition_log import PartitionLog
from gateway.topics.settings import TopicSettings
from gateway.topics.topic_catalogue import (
    Append,
    AppendResult,
    OffsetQuery,
    OffsetResult,
    PartitionKey,
    Read,
    ReadResult,
)
from model.ids import TopicId, TopicName
from model.topics import Topic, TopicImage, compute_image_with, compute_image_without
from storage.codec.batch_encoding import encode_batch
from storage.codec.batches import BatchHeader, read_batch_header
from tests.support.batches import decode_batches

NOW_MS = 1_700_000_000_000
ORDERS = TopicId(b"orders".ljust(16, b"\x01"))
KEY = PartitionKey(ORDERS, 0)


class FakeCoordinator:
    """The part of the coordinator that the store needs: the image, and its changes."""

    def __init__(self, *topics: Topic) -> None:
        self.image = TopicImage()
        self.callbacks: list[Callable[[Sequence[Topic]], None]] = []
        for topic in topics or (Topic(TopicName("orders"), ORDERS, 4),):
            self.put(topic)

    def is_serving(self) -> bool:
        return True

    def on_topics_changed(self, callback: Callable[[Sequence[Topic]], None]) -> None:
        self.callbacks.append(callback)

    def put(self, topic: Topic) -> None:
        self._change(compute_image_with(self.image, topic), ())

    def delete(self, name: str) -> None:
        gone = self.image.by_name[TopicName(name)]
        self._change(compute_image_without(self.image, TopicName(name)), (gone,))

    def _change(self, image: TopicImage, gone: Sequence[Topic]) -> None:
        self.image = image
        for callback in self.callbacks:
            callback(gone)


class StoreRig:
    """Calls the store and returns what it answers."""

    def __init__(self, topics: LocalTopics, coordinator: FakeCoordinator) -> None:
        self.topics = topics
        self.coordinator = coordinator

    def append(self, records: bytes, key: PartitionKey = KEY) -> AppendResult:
        return run_at_once(self.topics.append([Append(key, records)]))[0]

    def read(self, offset: int, max_bytes: int = 1 << 20, key: PartitionKey = KEY) -> ReadResult:
        return self.read_many([Read(key, offset, max_bytes)])[0]

    def read_many(self, reads: Sequence[Read], max_bytes: int = 1 << 20) -> list[ReadResult]:
        return list(run_at_once(self.topics.read(reads, max_bytes)))

    def offset(self, timestamp: int, key: PartitionKey = KEY) -> OffsetResult:
        return run_at_once(self.topics.find_offsets([OffsetQuery(key, timestamp)]))[0]

    def open(self, key: PartitionKey = KEY) -> PartitionLog:
        """The stored records of a partition."""
        run_at_once(self.topics._logs.open_in_steps(key))
        log = self.topics._logs.get(key)
        assert log is not None
        return log

    def end(self, key: PartitionKey = KEY) -> int:
        return self.offset(-1, key).offset

    def start(self, key: PartitionKey = KEY) -> int:
        return self.offset(-2, key).offset

    def values(self, offset: int = 0, key: PartitionKey = KEY) -> list[tuple[int, bytes | None]]:
        """All records from an offset on, read as a consumer does."""
        found: list[tuple[int, bytes | None]] = []
        while True:
            result = self.read(offset, key=key)
            assert result.error == 0
            batches = list(decode_batches(result.records))
            if not batches:
                return found
            for batch in batches:
                found += [(r.offset, r.value) for r in batch.records if r.offset >= offset]
            offset = batches[-1].last_offset + 1


@asynccontextmanager
async def run_store(
    folder: Path,
    coordinator: FakeCoordinator | None = None,
    *,
    now_ms: int = NOW_MS,
    **settings: Any,
) -> AsyncIterator[StoreRig]:
    """A started store, stopped at the end."""
    coordinator = coordinator or FakeCoordinator()
    topics = LocalTopics(
        folder,
        coordinator,  # type: ignore[arg-type]
        TopicSettings(**({"log_min_free_bytes": 0} | settings)),
        wall_ms=lambda: now_ms,
    )
    await topics.start()
    try:
        yield StoreRig(topics, coordinator)
    finally:
        await topics.stop()


def a_batch(*values: bytes, timestamp_ms: int = NOW_MS, **fields: Any) -> bytes:
    """A batch as a producer sends it."""
    records = [(b"k", value) for value in values or (b"v",)]
    return encode_batch(0, records, timestamp_ms, leader_epoch=-1, **fields)


def produced(sequence: int, *values: bytes, producer_id: int = 7, epoch: int = 0) -> bytes:
    """A batch of an idempotent producer."""
    return a_batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def headers(records: bytes) -> list[BatchHeader]:
    """The headers of batches one after the other."""
    found = []
    pos = 0
    while pos < len(records):
        found.append(read_batch_header(records, pos))
        pos += found[-1].size
    return found


def segment_files(folder: Path, key: PartitionKey = KEY) -> list[Path]:
    """The segment files of a partition in offset order."""
    return sorted((folder / key.topic_id.hex() / str(key.partition)).glob("*.log"))


def files(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder that match."""
    return sorted(folder.glob(pattern))


def count_open_files() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))
