"""Violations found in a log, and the report of a partition."""

from __future__ import annotations

from dataclasses import dataclass

from model.ids import LogPartition


class LogViolation(Exception):
    """A violation, at a record if one is known.

    ``rule`` is for scripts: an invariant such as ``S1``, or the check that failed, such as ``crc``
    or ``latest``.
    """

    def __init__(
        self, rule: str, why: str, offset: int | None = None, key: bytes | None = None
    ) -> None:
        super().__init__(why)
        self.rule = rule
        self.why = why
        self.offset = offset
        self.key = key


@dataclass(frozen=True, slots=True)
class Violation:
    """The first violation of a partition; ``partition`` is ``None`` if it belongs to none."""

    partition: LogPartition | None
    offset: int | None
    key: bytes | None
    rule: str
    why: str

    def __str__(self) -> str:
        where = [
            "" if self.partition is None else f"partition {self.partition}",
            "" if self.offset is None else f"offset {self.offset}",
            "" if self.key is None else f"key {self.key.hex()}",
        ]
        place = ", ".join(part for part in where if part)
        return f"{place}: {self.why} ({self.rule})" if place else f"{self.why} ({self.rule})"


@dataclass(slots=True)
class PartitionReport:
    """What was read of a partition, up to its end or its first violation.

    ``missing_offsets`` counts offsets before its end that have no record: compaction removed it,
    or, where nothing is compacted, it was lost.
    """

    partition: LogPartition
    batches: int = 0
    records: int = 0
    bytes: int = 0
    next_offset: int = 0
    missing_offsets: int = 0
    groups: int = 0
    violation: Violation | None = None
    notes: tuple[str, ...] = ()
