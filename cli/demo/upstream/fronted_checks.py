"""What the demo in front of a cluster states at the end. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cli.demo.ledger import Ownership, find_two_owners
from cli.demo.summary import Check
from cli.demo.upstream.reads import Reads


@dataclass(frozen=True, slots=True)
class Stay:
    """Where the group was at a point of the demo, and where it should have been."""

    when: str
    place: str
    wanted: str


@dataclass(frozen=True, slots=True)
class Kill:
    """What was acknowledged before the server was killed, and what the cluster had after it."""

    acknowledged: Mapping[int, int]
    found: Mapping[int, int]
    down_s: float


def check_reads(reads: Reads, ends: Mapping[int, int]) -> Check:
    """Every record was read."""
    produced, missing = sum(ends.values()), reads.count_missing(ends)
    return Check(
        "every record was read",
        produced > 0 and not missing,
        f"{missing} of {produced} records were not" if missing else f"{produced} records",
    )


def check_duplicates(reads: Reads) -> Check:
    """Only a change of owner makes a record be read twice."""
    count = reads.count_duplicates()
    return Check(
        "no record was read twice by the same owner",
        not reads.again and reads.count_read() > 0,
        "; ".join(reads.again) or f"{count} were read again by the next owner of their partition",
    )


def check_owners(ownerships: Sequence[Ownership]) -> Check:
    """No partition had two owners, by the consumers' own account."""
    overlaps = [
        f"partition {two.partition} of {two.first} and {two.second} for {two.seconds * 1000:.0f} ms"
        for two in find_two_owners(ownerships)
    ]
    return Check(
        "no partition had two owners",
        not overlaps and bool(ownerships),
        "; ".join(overlaps) or f"{len(ownerships)} ownerships recorded by the consumers",
    )


def check_kill(kill: Kill) -> Check:
    """Every commit that Muster had acknowledged is in the cluster."""
    missing = [
        f"partition {number} was acknowledged at {offset}, found {kill.found.get(number)}"
        for number, offset in kill.acknowledged.items()
        if kill.found.get(number, -1) < offset
    ]
    return Check(
        "every commit that was acknowledged before the kill is in the cluster",
        not missing and bool(kill.acknowledged),
        "; ".join(missing)
        or f"{len(kill.acknowledged)} partitions, Muster was down for {kill.down_s:.1f} s",
    )


def check_stays(stays: Sequence[Stay]) -> Check:
    """The group was in one place after the other."""
    wrong = [
        f"{stay.when}: {stay.place} instead of {stay.wanted}"
        for stay in stays
        if stay.place != stay.wanted
    ]
    evidence = ", ".join(f"{stay.place} ({stay.when})" for stay in stays)
    return Check(
        "the group was where it should be", not wrong and bool(stays), "; ".join(wrong) or evidence
    )


def check_members_there(found: Collection[str], wanted: Collection[str]) -> Check:
    """In the end the cluster has the consumers as members, and Muster no more."""
    return Check(
        "in the end the cluster has the group with its own members",
        sorted(found) == sorted(wanted),
        ", ".join(sorted(found)) or "it has none",
    )


def check_clients(failures: Sequence[str], failed: int) -> Check:
    """No consumer ended by itself, and every record was acknowledged."""
    found = list(failures)
    if failed:
        found.append(f"{failed} records were not acknowledged")
    return Check("no client failed", not found, "; ".join(found) or "all ended when asked")
