"""Pages of a log's records for people: decoded, the last record first, bounded.

The log is read backwards, batch by batch. A page ends when it is full, or when as much has been
looked at as one page may cost; the next one begins below.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from model.ids import GroupId, LogOffset, LogPartition, TopicName
from storage.codec.batches import Batch, BatchHeader, BatchRecord, decode_batch, read_batch_header
from storage.codec.record_filters import RecordFilter
from storage.codec.record_lines import compute_record_line
from storage.log.compression import decompress

PAGE_BYTES = 1 << 20
"""Keys, values and their JSON on a page; one record may be more."""

RECORD_BYTES = 1 << 19
"""What is shown of one record: of a longer one only its place."""

BATCHES_MAX = 20_000
"""Batches that are looked at for a page, in some 20 µs each."""

READ_BYTES_MAX = 32 << 20
"""Bytes of batches that are looked at for a page."""

_TOPIC_FIELDS = ("topic", "topicname", "topics", "topicnames")


class BackwardReads(Protocol):
    """Reads of a log towards its beginning."""

    def read_batch_before(self, partition: LogPartition, offset: LogOffset, /) -> bytes | None:
        """The last batch that begins before an offset; ``None`` if there is none."""


class RecordQuestion(NamedTuple):
    """Which records: below ``before``, as ``RecordFilter`` selects them, at most ``size``."""

    partition: LogPartition
    group_id: GroupId | None
    types: frozenset[int]
    since_ms: int | None
    until_ms: int | None
    before: LogOffset
    size: int


class RecordLine(NamedTuple):
    """A record, and the names of topics in it."""

    offset: int
    timestamp_ms: int
    base_offset: int
    producer_id: int
    producer_epoch: int
    is_transactional: bool
    type: str
    key: bytes | None
    value: bytes | None
    key_json: str
    value_json: str
    decode_error: str
    topics: frozenset[TopicName]

    @property
    def size(self) -> int:
        """The bytes that a page counts."""
        key, value = self.key or b"", self.value or b""
        return len(key) + len(value) + len(self.key_json) + len(self.value_json)


class RecordPage(NamedTuple):
    """By falling offset. ``reached``: the lowest offset looked at; 0 if there is nothing below."""

    lines: tuple[RecordLine, ...]
    reached: LogOffset


def read_record_page(log: BackwardReads, question: RecordQuestion) -> RecordPage:
    """Read the last records below an offset. Raises ``CodecError`` for damaged batches."""
    page = _Page(question)
    before, read_bytes = question.before, 0
    for _ in range(BATCHES_MAX):
        data = log.read_batch_before(question.partition, before)
        header = None if data is None else read_batch_header(data)
        if data is None or header is None or _is_older(header, question.since_ms):
            return RecordPage(page.lines(), LogOffset(0))
        if not page.add(header, data):
            break
        before = LogOffset(header.base_offset)
        read_bytes += len(data)
        if read_bytes >= READ_BYTES_MAX:
            break
    lines = page.lines()
    # A page that got full within a batch has reached its own last record.
    reached = min(before, lines[-1].offset) if lines else before
    return RecordPage(lines, LogOffset(reached))


def _is_older(header: BatchHeader, since_ms: int | None) -> bool:
    return since_ms is not None and header.max_timestamp < since_ms


class _Page:
    """Collects lines until it is full."""

    def __init__(self, question: RecordQuestion) -> None:
        asked = question.types, question.since_ms, question.until_ms
        self._question = question
        self._wanted = RecordFilter(question.group_id, *asked)
        self._wanted_markers = RecordFilter(None, *asked)
        self._lines: list[RecordLine] = []
        self._bytes = 0
        self._markers: dict[int, RecordLine] = {}
        """Markers by producer, until it is known whether they end something of the group."""

    def add(self, header: BatchHeader, data: bytes) -> bool:
        """Add what is selected of a batch; ``False`` if the page is full before its end."""
        question = self._question
        is_later = question.until_ms is not None and header.base_timestamp >= question.until_ms
        # No record of a batch is older than its first.
        if is_later or not self._wanted.may_hold(data):
            return True
        batch = decode_batch(data, decompress=decompress)
        if batch.is_control and question.group_id is not None:
            self._note_marker(batch)
            return True
        self._find_marker(batch)
        selected = self._wanted.select(question.partition, batch)
        return all(
            self._add(make_record_line(question.partition, batch, record))
            for record in reversed(selected)
            if record.offset < question.before
        )

    def lines(self) -> tuple[RecordLine, ...]:
        """By falling offset."""
        return tuple(sorted(self._lines, key=lambda line: -line.offset))

    def _add(self, line: RecordLine) -> bool:
        is_long = bool(self._lines) and self._bytes + line.size > PAGE_BYTES
        if is_long or len(self._lines) >= self._question.size:
            return False
        self._lines.append(line)
        self._bytes += line.size
        return True

    def _note_marker(self, batch: Batch) -> None:
        # The marker of the same producer that was met before ends another transaction.
        self._markers.pop(batch.producer_id, None)
        partition = self._question.partition
        for record in self._wanted_markers.select(partition, batch):
            if record.offset < self._question.before:
                self._markers[batch.producer_id] = make_record_line(partition, batch, record)

    def _find_marker(self, batch: Batch) -> None:
        """Add the marker that ends a batch, if that has records of the group."""
        if not batch.is_transactional or batch.producer_id not in self._markers:
            return
        if RecordFilter(self._question.group_id).select(self._question.partition, batch):
            self._add(self._markers.pop(batch.producer_id))


def make_record_line(partition: LogPartition, batch: Batch, record: BatchRecord) -> RecordLine:
    """Decode a record; what is too long to be shown is left out."""
    size = len(record.key or b"") + len(record.value or b"")
    line = compute_record_line(partition, batch, record) if size <= RECORD_BYTES else {}
    key_json, value_json = (_render(line.get(name)) for name in ("keyJson", "valueJson"))
    error = line.get("keyError") or line.get("valueError") or ""
    is_whole = size <= RECORD_BYTES and len(key_json) + len(value_json) <= RECORD_BYTES
    if not is_whole:
        key_json = value_json = ""
        error = f"the record has {size} bytes, which is too long to be shown"
    return RecordLine(
        offset=record.offset,
        timestamp_ms=record.timestamp,
        base_offset=batch.base_offset,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        is_transactional=batch.is_transactional,
        type=line.get("type", "UNKNOWN"),
        key=record.key if is_whole else None,
        value=record.value if is_whole else None,
        key_json=key_json,
        value_json=value_json,
        decode_error=error,
        topics=frozenset(find_topics([line.get("keyJson"), line.get("valueJson")])),
    )


def find_topics(content: Any) -> Iterator[TopicName]:
    """The names of topics in the JSON of a record."""
    if isinstance(content, list):
        for each in content:
            yield from find_topics(each)
    elif isinstance(content, dict):
        for name, value in content.items():
            if name.lower().endswith(_TOPIC_FIELDS):
                yield from _find_names(value)
            yield from find_topics(value)


def _find_names(value: Any) -> Iterator[TopicName]:
    for each in value if isinstance(value, list) else [value]:
        name = each.get("name") if isinstance(each, dict) else each
        if isinstance(name, str):
            yield TopicName(name)


def _render(content: Any) -> str:
    if content is None:
        return ""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))
