"""Filters records of a log by group, type, partition and time; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from storage.codec.batches import Batch, BatchRecord, read_batch_header
from storage.codec.errors import CodecError
from storage.codec.record_codec import read_type
from storage.codec.to_json import compute_type_name

CONTROL = "CONTROL"
"""The name of the type of control records, which end transactions."""

CONTROL_TYPE = -1
TYPES = {name: type_id for type_id in range(64) if (name := compute_type_name(type_id))} | {
    CONTROL: CONTROL_TYPE
}
"""The types of records by name."""

_TYPE_DIGITS_MAX = 9


class UnknownRecordType(ValueError):
    """A text is no type of records; the message is one line for users."""


@dataclass(slots=True)
class RecordFilter:
    """Selects batches and records, which must come in log order.

    A control record belongs to a group if its producer wrote records of the group in the
    transaction that it ends. ``types`` has ids of record types, and -1 for control records; an
    empty set means all. ``since_ms`` is inclusive, ``until_ms`` exclusive.
    """

    group: str | None = None
    types: frozenset[int] = frozenset()
    since_ms: int | None = None
    until_ms: int | None = None
    _group_prefix: bytes = field(init=False, default=b"")
    _producers: set[tuple[int, int]] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        if self.group is not None:
            name = self.group.encode("utf-8", "surrogatepass")
            self._group_prefix = len(name).to_bytes(2, "big") + name

    def may_hold(self, data: bytes) -> bool:
        """Whether a batch can hold a selected record; does not decode it."""
        try:
            header = read_batch_header(data)
        except CodecError:
            return True
        return header.is_control or header.compression > 0 or self._group_prefix in data

    def select(self, partition: int, batch: Batch) -> list[BatchRecord]:
        """The selected records of a batch."""
        return [record for record in batch.records if self._is_wanted(partition, batch, record)]

    def _is_wanted(self, partition: int, batch: Batch, record: BatchRecord) -> bool:
        if self.group is not None and not self._is_of_group(partition, batch, record):
            return False
        if self.types and self._compute_type(batch, record) not in self.types:
            return False
        if self.since_ms is not None and record.timestamp < self.since_ms:
            return False
        return self.until_ms is None or record.timestamp < self.until_ms

    def _is_of_group(self, partition: int, batch: Batch, record: BatchRecord) -> bool:
        producer = partition, batch.producer_id
        if batch.is_control:
            was_writing = producer in self._producers
            self._producers.discard(producer)
            return was_writing
        key = record.key
        if key is None or not key.startswith(self._group_prefix, 2):
            return False
        if batch.is_transactional:
            self._producers.add(producer)
        return True

    def _compute_type(self, batch: Batch, record: BatchRecord) -> int | None:
        if batch.is_control:
            return CONTROL_TYPE
        return read_type(record.key) if record.key is not None and len(record.key) > 1 else None


def parse_types(texts: Iterable[str]) -> frozenset[int]:
    """Parse type names such as ``OFFSET_COMMIT``, numbers, and ``control`` into ids.

    Raises ``UnknownRecordType``.
    """
    return frozenset(
        _parse_type(part.strip()) for text in texts for part in text.split(",") if part.strip()
    )


def _parse_type(text: str) -> int:
    known = TYPES.get(text.upper())
    if known is not None:
        return known
    if text.isascii() and text.isdecimal() and len(text) <= _TYPE_DIGITS_MAX:
        return int(text)
    names = ", ".join(TYPES)
    raise UnknownRecordType(f"{text!r} is not a record type: use a number or one of {names}")
