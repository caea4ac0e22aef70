"""What members of a group did, by their own account, and what must never be in it; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tests.kafka.java import Event

_GONE: Final = ("closed", "failed", "killed")
SLACK_MS: Final = 1_000
"""A poll that brings records may end this long after a rebalance within it was told."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An event of a member. Times are ms of the clock that all processes of the machine share."""

    member: str
    event: Event

    @property
    def at_ms(self) -> int:
        return int(self.event["at_ms"])

    @property
    def kind(self) -> str:
        return str(self.event["event"])


@dataclass(frozen=True, slots=True)
class Pause:
    """A member that was to read read nothing between two moments."""

    member: str
    begin_ms: int
    end_ms: int

    @property
    def took_ms(self) -> int:
        return self.end_ms - self.begin_ms


@dataclass(frozen=True, slots=True)
class Ledger:
    """All that the members said, in the order of time."""

    entries: Sequence[Entry]

    @staticmethod
    def of(events: Mapping[str, Iterable[Event]]) -> Ledger:
        """By the names of the members."""
        entries = [Entry(name, event) for name, found in events.items() for event in found]
        return Ledger(sorted(entries, key=lambda entry: entry.at_ms))

    def find_unread(self, produced: Mapping[str, int]) -> list[str]:
        """Offsets that nobody read, of partitions that have so many records each."""
        spans = self._collect_spans()
        found = []
        for name, count in produced.items():
            wanted = 0
            for first, last in [*sorted(spans.get(name, [])), (count, count)]:
                if first > wanted:
                    found.append(f"nobody read {name} {wanted} to {first - 1}")
                wanted = max(wanted, last + 1)
        return found

    def count_read_again(self) -> int:
        """Records that were read before, by whomever."""
        count = 0
        for spans in self._collect_spans().values():
            wanted = 0
            for first, last in sorted(spans):
                count += max(0, min(wanted, last + 1) - first)
                wanted = max(wanted, last + 1)
        return count

    def find_double_owners(self) -> list[str]:
        """Each time at which a partition was given to a member while another had it."""
        owners: dict[str, str] = {}
        found = []
        # What is given up in a millisecond comes before what is taken in it.
        for entry in sorted(self.entries, key=lambda each: (each.at_ms, each.kind == "assigned")):
            if entry.kind in _GONE:
                owners = {name: who for name, who in owners.items() if who != entry.member}
            for name in _named(entry):
                if entry.kind != "assigned":
                    if owners.get(name) == entry.member:
                        del owners[name]
                elif owners.setdefault(name, entry.member) != entry.member:
                    both = f"{owners[name]} and {entry.member}"
                    found.append(f"{name} was {both}'s at {entry.at_ms}")
                    owners[name] = entry.member
        return found

    def find_backward(self) -> list[str]:
        """Reads that went back though the member had got the partition no second time."""
        given_ms: dict[tuple[str, str], int] = {}
        read: dict[tuple[str, str], int] = {}
        found = []
        for entry in self.entries:
            if entry.kind == "assigned":
                for name in _named(entry):
                    given_ms[entry.member, name] = entry.at_ms
                    read.pop((entry.member, name), None)
            for name, first, last in _spans(entry):
                key = entry.member, name
                is_new = entry.at_ms - given_ms.get(key, 0) <= SLACK_MS
                if first <= read.get(key, -1) and not is_new:
                    found.append(f"{entry.member} read {name} {first} after {read[key]}")
                read[key] = last
        return found

    def find_lost_commits(self) -> list[str]:
        """Records that were read by who got the partition after a commit of them was acknowledged.

        A commit is of all that the member had read by then of what it held.
        """
        committed: dict[str, int] = {}
        read: dict[tuple[str, str], int] = {}
        floors: dict[tuple[str, str], int] = {}
        found = []
        for entry in self.entries:
            for name in _named(entry):
                # What was given up is in no later commit.
                read.pop((entry.member, name), None)
                if entry.kind == "assigned":
                    floors[entry.member, name] = committed.get(name, -1)
            for name, first, last in _spans(entry):
                key = entry.member, name
                floor = floors.get(key, -1)
                if first <= floor and key not in read:
                    found.append(f"{entry.member} read {name} {first}: {floor} was committed")
                read[key] = last
            if entry.kind == "committed":
                for (member, name), last in read.items():
                    if member == entry.member:
                        committed[name] = max(committed.get(name, -1), last)
        return found

    def find_pauses(self, since_ms: int = 0, until_ms: int | None = None) -> list[Pause]:
        """The longest pause of each member between two reads, of those that end in this time; the
        longest first."""
        read_ms: dict[str, list[int]] = {}
        for entry in self.entries:
            if entry.kind == "records":
                read_ms.setdefault(entry.member, []).append(entry.at_ms)
        found = []
        for member, times in read_ms.items():
            pauses = [
                Pause(member, begin, end)
                for begin, end in pairwise(times)
                if end >= since_ms and (until_ms is None or begin <= until_ms)
            ]
            if pauses:
                found.append(max(pauses, key=lambda pause: pause.took_ms))
        return sorted(found, key=lambda pause: -pause.took_ms)

    def find_failures(self) -> list[str]:
        """Members that ended by an error."""
        return [
            f"{entry.member}: {entry.event}" for entry in self.entries if entry.kind == "failed"
        ]

    def count(self, kind: str, since_ms: int = 0) -> dict[str, int]:
        """How often each member said this."""
        found: dict[str, int] = {}
        for entry in self.entries:
            if entry.kind == kind and entry.at_ms >= since_ms:
                found[entry.member] = found.get(entry.member, 0) + 1
        return found

    def find_violations(
        self, produced: Mapping[str, int], *, had_zombies: bool = False
    ) -> list[str]:
        """All that must never be; zombies own in their own view what others have."""
        return [
            *self.find_failures(),
            *self.find_unread(produced),
            *([] if had_zombies else self.find_double_owners()),
            *self.find_backward(),
            *self.find_lost_commits(),
        ]

    def _collect_spans(self) -> dict[str, list[tuple[int, int]]]:
        spans: dict[str, list[tuple[int, int]]] = {}
        for entry in self.entries:
            for name, first, last in _spans(entry):
                spans.setdefault(name, []).append((first, last))
        return spans


def _named(entry: Entry) -> Sequence[str]:
    """The partitions of a change of owners."""
    if entry.kind in ("assigned", "revoked", "lost"):
        return list(entry.event["partitions"])
    return ()


def _spans(entry: Entry) -> Iterable[tuple[str, int, int]]:
    if entry.kind == "records":
        for name, runs in entry.event["spans"].items():
            for first, last in runs:
                yield name, int(first), int(last)
