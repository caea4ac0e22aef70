"""The checks of the ledger find what they are for, and nothing else."""

from __future__ import annotations

from typing import Any

from tests.upstream.ledger import Ledger, Pause

Said = dict[str, Any]


def assigned(at_ms: int, *names: str) -> Said:
    return {"event": "assigned", "at_ms": at_ms, "partitions": list(names)}


def revoked(at_ms: int, *names: str) -> Said:
    return {"event": "revoked", "at_ms": at_ms, "partitions": list(names)}


def read(at_ms: int, first: int, last: int, name: str = "p-0") -> Said:
    return {"event": "records", "at_ms": at_ms, "spans": {name: [[first, last]]}}


def said(event: str, at_ms: int) -> Said:
    return {"event": event, "at_ms": at_ms}


def test_a_handover_without_fault() -> None:
    one = [
        assigned(1, "p-0"),
        read(2_000, 0, 9),
        said("committed", 2_001),
        read(2_100, 10, 12),
        revoked(2_200, "p-0"),
    ]
    two = [assigned(2_200, "p-0"), read(2_300, 10, 19), said("committed", 2_301)]
    ledger = Ledger.of({"one": one, "two": two})
    assert ledger.find_violations({"p-0": 20}) == []
    assert ledger.count_read_again() == 3
    assert ledger.find_pauses() == [Pause("one", 2_000, 2_100)]


def test_unread() -> None:
    ledger = Ledger.of({"one": [assigned(1, "p-0"), read(2_000, 2, 4), read(2_001, 7, 8)]})
    assert ledger.find_unread({"p-0": 10, "p-1": 0}) == [
        "nobody read p-0 0 to 1",
        "nobody read p-0 5 to 6",
        "nobody read p-0 9 to 9",
    ]


def test_two_owners() -> None:
    events = {"one": [assigned(1, "p-0")], "two": [assigned(5, "p-0")]}
    assert Ledger.of(events).find_double_owners() == ["p-0 was one and two's at 5"]


def test_who_has_closed_or_was_killed_owns_nothing() -> None:
    for end in ("closed", "killed", "failed"):
        events = {"one": [assigned(1, "p-0"), said(end, 4)], "two": [assigned(5, "p-0")]}
        assert Ledger.of(events).find_double_owners() == []


def test_a_read_that_goes_back_within_an_ownership() -> None:
    events = {"one": [assigned(1, "p-0"), read(2_000, 0, 9), read(3_000, 5, 12)]}
    assert Ledger.of(events).find_backward() == ["one read p-0 5 after 9"]


def test_a_commit_that_was_acknowledged_and_lost() -> None:
    one = [assigned(1, "p-0"), read(2, 0, 9), said("committed", 3), revoked(4, "p-0")]
    two = [assigned(5, "p-0"), read(6, 8, 12)]
    found = Ledger.of({"one": one, "two": two}).find_lost_commits()
    assert found == ["two read p-0 8: 9 was committed"]


def test_a_commit_is_not_of_what_was_given_up_before() -> None:
    one = [assigned(1, "p-0", "p-1"), read(2, 0, 9), revoked(4, "p-0"), said("committed", 5)]
    two = [assigned(6, "p-0"), read(7, 8, 12)]
    assert Ledger.of({"one": one, "two": two}).find_lost_commits() == []


def test_a_member_that_ended_by_an_error() -> None:
    assert Ledger.of({"one": [said("failed", 1)]}).find_violations({}) != []
