"""Filters records of a log by group, type, partition and time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cli.errors import CommandError, ExitCode
from storage.codec.batches import Batch, BatchRecord, read_batch_header
from storage.codec.errors import CodecError
from storage.codec.record_codec import read_type
from storage.codec.to_json import compute_type_name

CONTROL = "CONTROL"
"""What `--type` calls the control records that end transactions."""

_KNOWN_TYPES = {name: type_id for type_id in range(64) if (name := compute_type_name(type_id))}
_AGO = re.compile(r"(\d+)(ms|s|m|h|d)")
_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


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
            return -1
        return read_type(record.key) if record.key is not None and len(record.key) > 1 else None


def parse_types(texts: Sequence[str]) -> frozenset[int]:
    """Parse type names such as ``OFFSET_COMMIT``, numbers, and ``control`` (-1) into ids."""
    types = set()
    for text in (part.strip() for whole in texts for part in whole.split(",")):
        name = text.upper()
        if name == CONTROL:
            types.add(-1)
        elif name in _KNOWN_TYPES:
            types.add(_KNOWN_TYPES[name])
        elif text.isdecimal():
            types.add(int(text))
        else:
            known = ", ".join((*_KNOWN_TYPES, CONTROL))
            raise CommandError(
                f"--type {text!r} is not a record type: use a number or one of {known}",
                ExitCode.USAGE,
            )
    return frozenset(types)


def parse_time(option: str, text: str, now_ms: Callable[[], int]) -> int:
    """Parse an ISO 8601 time (UTC by default), ms since 1970, or an age, into wall-clock ms.

    An age such as ``90m`` or ``2d`` counts back from ``now_ms``.
    """
    if match := _AGO.fullmatch(text):
        return now_ms() - int(match[1]) * _MS[match[2]]
    if text.isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(
            f"{option} {text!r} is not a time: use 2026-11-21T20:57:13Z, ms since 1970, or an age "
            "such as 90m or 2d",
            ExitCode.USAGE,
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
