"""A partition of ``__consumer_offsets`` as on a broker's disk: it grows, is rolled, compacted,
merged and truncated, in files of the same names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

from model.ids import GroupId, TopicName
from model.log.records import OffsetCommitKey, OffsetCommitValue
from pipeline.schema import TOPIC
from storage.codec.batch_encoding import encode_batch, encode_marker, reencode_batch
from storage.codec.batches import Batch, BatchRecord, decode_batch, read_batch_header
from storage.codec.record_codec import encode_key, encode_value
from tests.support.pipeline.blocks import START_MS

PRODUCERS = (7, 8)


class BrokerLog:
    """Batches by segment. A changed file is replaced on disk at once, under its old name."""

    def __init__(self, folder: Path, partition: int = 0) -> None:
        self.folder = folder / f"{TOPIC}-{partition}"
        self.folder.mkdir(parents=True)
        self.segments: dict[int, list[bytes]] = {0: []}
        self._write(0)

    @property
    def end(self) -> int:
        last = list(self.segments)[-1]
        batches = self.segments[last]
        return read_batch_header(batches[-1]).last_offset + 1 if batches else last

    def append(self, *batches: bytes) -> None:
        """Append batches to the last segment."""
        last = list(self.segments)[-1]
        self.segments[last].extend(batches)
        with self._file(last).open("ab") as file:
            file.writelines(batches)

    def tear(self, batch: bytes, size: int) -> None:
        """Write the start of a batch, as a reader may see it; ``append`` completes it."""
        last = list(self.segments)[-1]
        self._write(last, more=batch[:size])

    def mend(self) -> None:
        """Remove the torn tail."""
        self._write(list(self.segments)[-1])

    def roll(self) -> None:
        """Roll a new segment, unless the last one is empty."""
        if self.end not in self.segments:
            self.segments[self.end] = []
            self._write(self.end)

    def cut(self, offset: int) -> int:
        """Truncate at an offset; return the end of the rest."""
        for base in list(self.segments):
            if base >= offset and base:
                del self.segments[base]
                self._file(base).unlink()
        last = list(self.segments)[-1]
        whole = [
            batch for batch in self.segments[last] if read_batch_header(batch).last_offset < offset
        ]
        self.segments[last] = whole
        self._write(last)
        return self.end

    def clean(self, chance: Random, *, keep: float = 0.0) -> None:
        """Compact all but the last segment; some superseded records may remain for now."""
        cleaned = list(self.segments)[:-1]
        latest = {
            record.key: record.offset
            for base in cleaned
            for batch in map(decode_batch, self.segments[base])
            for record in batch.records
        }
        for base in cleaned:
            self.segments[base] = list(
                clean_batches(map(decode_batch, self.segments[base]), latest, chance, keep)
            )
            self._write(base)

    def merge(self, chance: Random) -> None:
        """Merge what is left of two neighbouring segments into the file of the first."""
        pairs = list(pairwise(list(self.segments)[:-1]))
        if pairs:
            first, second = chance.choice(pairs)
            self.segments[first] += self.segments.pop(second)
            self._file(second).unlink()
            self._write(first)

    def _write(self, base: int, more: bytes = b"") -> None:
        writing = self.folder / "writing.swap-"
        writing.write_bytes(b"".join(self.segments[base]) + more)
        os.replace(writing, self._file(base))

    def _file(self, base: int) -> Path:
        return self.folder / f"{base:020}.log"


def clean_batches(
    batches: Iterable[Batch], latest: dict[bytes | None, int], chance: Random, keep: float
) -> Iterator[bytes]:
    """What Kafka's cleaner leaves: batches keep their offsets, and lose records or disappear.

    Transactions that may be open are left unchanged.
    """
    for batch in batches:
        records = tuple(
            record
            for record in batch.records
            if batch.is_transactional
            or latest[record.key] == record.offset
            or chance.random() < keep
        )
        if records:
            stamp = max(record.timestamp for record in records)
            yield reencode_batch(
                replace(batch, records=records, count=len(records), max_timestamp=stamp)
            )


def make_batch(chance: Random, base_offset: int, *, group: str = "g") -> bytes:
    """Commits and tombstones of few keys, some in transactions, or the end marker of one."""
    time_ms = START_MS + base_offset * 1000
    producer_id = chance.choice(PRODUCERS)
    kind = chance.random()
    if kind < 0.1:
        committed = chance.random() < 0.5
        return encode_marker(
            base_offset,
            time_ms,
            producer_id=producer_id,
            producer_epoch=0,
            committed=committed,
            coordinator_epoch=0,
        )
    records = [
        _make_record(chance, group, base_offset + number) for number in range(chance.randint(1, 6))
    ]
    if kind < 0.2:
        return encode_batch(
            base_offset,
            records,
            time_ms,
            producer_id=producer_id,
            producer_epoch=0,
            is_transactional=True,
        )
    return encode_batch(base_offset, records, time_ms)


def _make_record(chance: Random, group: str, offset: int) -> tuple[bytes, bytes | None]:
    key = encode_key(OffsetCommitKey(GroupId(group), TopicName("t"), chance.randrange(8)))
    if chance.random() < 0.1:
        return key, None
    return key, encode_value(OffsetCommitValue(offset, 3, "", START_MS + offset))


def list_records(log: BrokerLog) -> list[BatchRecord]:
    return [
        record
        for batches in log.segments.values()
        for batch in map(decode_batch, batches)
        for record in batch.records
    ]
