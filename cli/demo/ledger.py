"""What the workers wrote down, and what follows from it. Pure: events in, findings out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cli.demo.events import Event, Kind


class Ownership(NamedTuple):
    """A worker owned a partition from one moment to another; ``until_s`` infinite for: still."""

    partition: int
    worker: str
    from_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class TwoOwners:
    """Two workers owned a partition at a time."""

    partition: int
    first: str
    second: str
    seconds: float


class Ledger:
    """The events of one group's workers, in the order in which they arrived."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.keeps_commits = True
        """Whether each commit is kept, and not only what was committed last."""
        self._committed: dict[int, int] = {}
        self._deaths: dict[str, float] = {}

    def add(self, event: Event) -> None:
        """One more event."""
        if event.kind is Kind.COMMITTED:
            _raise_to(self._committed, event.offsets)
        if event.kind is not Kind.COMMITTED or self.keeps_commits:
            self.events.append(event)

    def note_death(self, worker: str, at_s: float) -> None:
        """The worker was dead by then: what it owned it owns no longer."""
        self._deaths[worker] = at_s

    def ownerships(self) -> list[Ownership]:
        """Who owned what and when, by the workers' own words, ordered by partition and time."""
        return compute_ownerships(self.events, self._deaths)

    def owners_now(self) -> dict[int, str]:
        """Who owns each partition; partitions without an owner are not in it."""
        return {
            entry.partition: entry.worker
            for entry in self.ownerships()
            if entry.until_s == float("inf")
        }

    def committed_now(self) -> dict[int, int]:
        """For each partition the highest offset acknowledged so far."""
        return dict(self._committed)

    def committed(self, before_s: float) -> dict[int, int]:
        """For each partition the highest offset acknowledged before a moment."""
        highest: dict[int, int] = {}
        for event in self.events:
            if event.kind is Kind.COMMITTED and event.at_s < before_s:
                _raise_to(highest, event.offsets)
        return highest

    def count_commits(self, before_s: float) -> int:
        """Offsets acknowledged before a moment."""
        return sum(
            len(event.offsets)
            for event in self.events
            if event.kind is Kind.COMMITTED and event.at_s < before_s
        )

    def moves(self, from_s: float, until_s: float) -> list[Event]:
        """Events by which partitions changed hands, in their order in time."""
        kinds = (Kind.ASSIGNED, Kind.REVOKED, Kind.LOST)
        found = [
            event
            for event in self.events
            if event.kind in kinds and event.partitions and from_s <= event.at_s < until_s
        ]
        return sorted(found, key=lambda event: event.at_s)

    def first(self, worker: str, kind: Kind) -> float | None:
        """When something first happened to a worker."""
        times = [e.at_s for e in self.events if e.worker == worker and e.kind is kind]
        return min(times, default=None)


def _raise_to(highest: dict[int, int], offsets: Mapping[int, int]) -> None:
    for partition, offset in offsets.items():
        highest[partition] = max(highest.get(partition, 0), offset)


def compute_ownerships(events: Iterable[Event], deaths: Mapping[str, float]) -> list[Ownership]:
    """From assigned to revoked, lost or death; ordered by partition and time."""
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


def find_two_owners(ownerships: Sequence[Ownership]) -> list[TwoOwners]:
    """Every overlap of two workers' ownerships of a partition."""
    found: list[TwoOwners] = []
    by_partition: dict[int, list[Ownership]] = {}
    for entry in sorted(ownerships, key=lambda entry: entry.from_s):
        for other in by_partition.setdefault(entry.partition, []):
            overlap = min(entry.until_s, other.until_s) - entry.from_s
            if other.worker != entry.worker and overlap > 0:
                found.append(TwoOwners(entry.partition, other.worker, entry.worker, overlap))
        by_partition[entry.partition].append(entry)
    return found
