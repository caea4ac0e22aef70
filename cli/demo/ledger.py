"""The recorded events of the workers, and conclusions from them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cli.demo.events import Event, Kind


class Ownership(NamedTuple):
    """A worker owned a partition for a time; ``until_s`` is infinite if it still does."""

    partition: int
    worker: str
    from_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class TwoOwners:
    """Two workers owned a partition at the same time."""

    partition: int
    first: str
    second: str
    seconds: float


class Ledger:
    """The events of one group's workers, in order of arrival."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.keeps_commits = True
        """Whether to keep every commit, or only the last committed offsets."""
        self._committed: dict[int, int] = {}
        self._deaths: dict[str, float] = {}

    def add(self, event: Event) -> None:
        """Add an event."""
        if event.kind is Kind.COMMITTED:
            _raise_to(self._committed, event.offsets)
        if event.kind is not Kind.COMMITTED or self.keeps_commits:
            self.events.append(event)

    def note_death(self, worker: str, at_s: float) -> None:
        """Record that a worker was dead by then; its ownerships end."""
        self._deaths[worker] = at_s

    def ownerships(self) -> list[Ownership]:
        """Who owned what and when, according to the workers; by partition and time."""
        return compute_ownerships(self.events, self._deaths)

    def owners_now(self) -> dict[int, str]:
        """The current owner of each partition that has one."""
        return {
            entry.partition: entry.worker
            for entry in self.ownerships()
            if entry.until_s == float("inf")
        }

    def committed_now(self) -> dict[int, int]:
        """The highest acknowledged offset of each partition."""
        return dict(self._committed)

    def committed(self, before_s: float) -> dict[int, int]:
        """The highest offset of each partition that was acknowledged before a moment."""
        highest: dict[int, int] = {}
        for event in self.events:
            if event.kind is Kind.COMMITTED and event.at_s < before_s:
                _raise_to(highest, event.offsets)
        return highest

    def count_commits(self, before_s: float) -> int:
        """Count the offsets acknowledged before a moment."""
        return sum(
            len(event.offsets)
            for event in self.events
            if event.kind is Kind.COMMITTED and event.at_s < before_s
        )

    def moves(self, from_s: float, until_s: float) -> list[Event]:
        """Events that changed the owner of partitions, by time."""
        kinds = (Kind.ASSIGNED, Kind.REVOKED, Kind.LOST)
        found = [
            event
            for event in self.events
            if event.kind in kinds and event.partitions and from_s <= event.at_s < until_s
        ]
        return sorted(found, key=lambda event: event.at_s)

    def first(self, worker: str, kind: Kind) -> float | None:
        """When an event of this kind first happened to a worker."""
        times = [e.at_s for e in self.events if e.worker == worker and e.kind is kind]
        return min(times, default=None)


def _raise_to(highest: dict[int, int], offsets: Mapping[int, int]) -> None:
    for partition, offset in offsets.items():
        highest[partition] = max(highest.get(partition, 0), offset)


def compute_ownerships(events: Iterable[Event], deaths: Mapping[str, float]) -> list[Ownership]:
    """Ownerships from assignment to revocation, loss or death; by partition and time."""
    held: dict[tuple[str, int], float] = {}
    found: list[Ownership] = []
    for event in sorted(events, key=lambda event: event.at_s):
        for partition in event.partitions:
            key = (event.worker, partition)
            if event.kind is Kind.ASSIGNED:
                held.setdefault(key, event.at_s)
            elif event.kind in (Kind.REVOKED, Kind.LOST) and key in held:
                found.append(Ownership(partition, event.worker, held.pop(key), event.at_s))
    for (worker, partition), from_s in held.items():
        found.append(Ownership(partition, worker, from_s, deaths.get(worker, float("inf"))))
    return sorted(found, key=lambda entry: (entry.partition, entry.from_s))


def compute_longest_gap_s(ownerships: Iterable[Ownership], since_s: float) -> float:
    """How long a partition was without an owner at most, between two, after a moment."""
    longest_s = 0.0
    until: dict[int, float] = {}
    for entry in sorted(ownerships, key=lambda entry: entry.from_s):
        before_s = until.get(entry.partition, entry.from_s)
        if entry.from_s > since_s:
            longest_s = max(longest_s, entry.from_s - before_s)
        until[entry.partition] = max(before_s, entry.until_s)
    return longest_s


def find_two_owners(ownerships: Sequence[Ownership]) -> list[TwoOwners]:
    """Find every overlap of two workers' ownerships of a partition."""
    found: list[TwoOwners] = []
    by_partition: dict[int, list[Ownership]] = {}
    for entry in sorted(ownerships, key=lambda entry: entry.from_s):
        for other in by_partition.setdefault(entry.partition, []):
            overlap = min(entry.until_s, other.until_s) - entry.from_s
            if other.worker != entry.worker and overlap > 0:
                found.append(TwoOwners(entry.partition, other.worker, entry.worker, overlap))
        by_partition[entry.partition].append(entry)
    return found
