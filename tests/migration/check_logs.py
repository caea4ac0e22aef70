"""What the logs of a group's members say of a migration: owners, messages, and standstills."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.kafka.java import Event

STANDSTILL_MS = 2_000
"""A member that is not being replaced processes messages at least as often."""
AFTER_KILL_MS = 10_000
"""Apart from this time after the server was killed."""


def find_double_owners(events: Iterable[Event]) -> list[str]:
    """Each time at which a partition was given to a member while another had it."""
    owners: dict[str, str] = {}
    found = []
    for at_ms, taken, member, name in sorted(_changes(events)):
        if not taken:
            if owners.get(name) == member:
                del owners[name]
        elif owners.setdefault(name, member) != member:
            found.append(f"{name} at {at_ms}: {owners[name]} and {member}")
    return found


def _changes(events: Iterable[Event]) -> Iterable[tuple[int, bool, str, str]]:
    """Times, with what was given up before what was taken within a millisecond."""
    for event in events:
        taken = event["event"] == "assigned"
        if taken or event["event"] in ("revoked", "lost"):
            for name in event["partitions"]:
                yield event["at_ms"], taken, event["member"], name


def find_unread(events: Iterable[Event], counts: dict[str, int]) -> list[str]:
    """Offsets that no member has read, of partitions with so many messages each."""
    read: dict[str, list[tuple[int, int]]] = {name: [] for name in counts}
    for event in events:
        if event["event"] == "records":
            for name, (first, last) in event["spans"].items():
                read[name].append((first, last))
    found = []
    for name, spans in read.items():
        wanted = 0
        for first, last in sorted(spans):
            if first > wanted:
                found.append(f"{name}: {wanted} to {first - 1}")
            wanted = max(wanted, last + 1)
        if wanted < counts[name]:
            found.append(f"{name}: {wanted} to {counts[name] - 1}")
    return found


@dataclass(frozen=True, slots=True)
class Standstill:
    """A member read nothing between two moments, in ms of wall-clock time."""

    member: str
    begin_ms: int
    end_ms: int

    @property
    def took_ms(self) -> int:
        return self.end_ms - self.begin_ms


def compute_standstills(events: Iterable[Event], kills_ms: Sequence[int]) -> list[Standstill]:
    """The gaps between the reads of each member until it is told to close, the longest first.

    What lies within the time after a kill is cut out.
    """
    at: dict[str, int] = {}
    found = []
    for event in events:
        member, now_ms = event["member"], event["at_ms"]
        if event["event"] == "closing":
            at.pop(member, None)
        elif event["event"] == "records":
            if member in at:
                found += _cut(Standstill(member, at[member], now_ms), kills_ms)
            at[member] = now_ms
    return sorted(found, key=lambda each: -each.took_ms)


def compute_closes(events: Sequence[Event]) -> list[Standstill]:
    """How long each member took to close, the longest first."""
    told = {event["member"]: event["at_ms"] for event in events if event["event"] == "closing"}
    found = [
        Standstill(event["member"], told[event["member"]], event["at_ms"])
        for event in events
        if event["event"] == "closed" and event["member"] in told
    ]
    return sorted(found, key=lambda each: -each.took_ms)


def _cut(gap: Standstill, kills_ms: Sequence[int]) -> list[Standstill]:
    parts = [gap]
    for kill_ms in kills_ms:
        parts = [
            part
            for each in parts
            for part in (
                Standstill(each.member, each.begin_ms, min(each.end_ms, kill_ms)),
                Standstill(each.member, max(each.begin_ms, kill_ms + AFTER_KILL_MS), each.end_ms),
            )
            if part.took_ms > 0
        ]
    return parts
