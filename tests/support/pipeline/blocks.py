"""Batches for tests of the pipeline: of records in Kafka's JSON, or of offset commits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from model.ids import GroupId, TopicName
from model.log.records import OffsetCommitKey, OffsetCommitValue
from storage.codec.batch_encoding import encode_batch
from storage.codec.record_codec import encode_key, encode_value

START_MS = 1_795_000_000_000


def make_batch(lines: Sequence[dict[str, Any]], base_offset: int = 0) -> bytes:
    """The keys and values of golden lines, with one timestamp."""
    records = [
        (
            bytes.fromhex(line["key"]),
            None if line["value"] is None else bytes.fromhex(line["value"]),
        )
        for line in lines
    ]
    return encode_batch(base_offset, records, START_MS)


def make_commits(base_offset: int, count: int, *, time_ms: int = START_MS) -> bytes:
    """A batch of commits whose committed offsets are their own log offsets."""
    records = [
        (
            encode_key(OffsetCommitKey(GroupId("g"), TopicName("t"), offset % 7)),
            encode_value(OffsetCommitValue(offset, 3, "", time_ms)),
        )
        for offset in range(base_offset, base_offset + count)
    ]
    return encode_batch(base_offset, records, time_ms)


def make_log(batches: int, *, count: int = 3, step_ms: int = 1000) -> list[bytes]:
    """Consecutive batches of ``count`` commits, ``step_ms`` apart."""
    return [
        make_commits(number * count, count, time_ms=START_MS + number * step_ms)
        for number in range(batches)
    ]
