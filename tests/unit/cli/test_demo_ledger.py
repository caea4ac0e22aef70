"""The demo's conclusions from its workers' records."""

import dataclasses
from math import inf

import pytest

from cli.demo.events import Event, Kind, decode_event, encode_event
from cli.demo.ledger import (
    Ledger,
    Ownership,
    TwoOwners,
    compute_longest_gap_s,
    compute_ownerships,
    find_two_owners,
)
from cli.demo.observer import GroupView, MemberView, find_double, is_settled
from cli.demo.summary import (
    Change,
    Outage,
    check_commits,
    check_converged,
    check_one_owner,
    check_restart,
    check_workers,
    render_changes,
)


def assigned(at_s: float, worker: str, *partitions: int) -> Event:
    return Event(at_s, worker, Kind.ASSIGNED, partitions)


def revoked(at_s: float, worker: str, *partitions: int) -> Event:
    return Event(at_s, worker, Kind.REVOKED, partitions)


def committed(at_s: float, worker: str, **offsets: int) -> Event:
    numbers = {int(name.removeprefix("p")): offset for name, offset in offsets.items()}
    return Event(at_s, worker, Kind.COMMITTED, (), numbers)


OUTAGE = Outage(
    down_s=1.5,
    committed={"billing": {0: 10, 1: 20}},
    commits=4,
    found={"billing": {0: 10, 1: 25}},
    audit_acknowledged=100,
    audit_attempted=101,
    audit_found=101,
    epochs_before={"billing": (5, {"a": 5})},
    epochs_after={"billing": (5, {"a": 5})},
    moves=0,
)


def test_an_event_is_a_line_and_back() -> None:
    event = Event(1.25, "a", Kind.COMMITTED, (1, 2), {3: 4}, 'it "failed"\n')
    assert "\n" not in encode_event(event)
    assert decode_event(encode_event(event)) == event


@pytest.mark.parametrize("line", ["", "{", "[]", '{"at_s": 1'])
def test_a_line_that_was_cut_short_is_no_event(line: str) -> None:
    with pytest.raises(ValueError):
        decode_event(line)


def test_ownership_is_from_assigned_to_revoked_lost_or_death() -> None:
    events = [
        assigned(1, "a", 0, 1, 2),
        revoked(2, "a", 1),
        Event(3, "a", Kind.LOST, (2,)),
        assigned(4, "b", 1),
    ]
    assert compute_ownerships(events, {"a": 9.0}) == [
        Ownership(0, "a", 1, 9.0),
        Ownership(1, "a", 1, 2),
        Ownership(1, "b", 4, inf),
        Ownership(2, "a", 1, 3),
    ]


def test_events_are_put_in_order_whichever_pipe_was_read_first() -> None:
    ledger = Ledger()
    for event in (assigned(4, "b", 0), assigned(1, "a", 0), revoked(3, "a", 0)):
        ledger.add(event)
    assert find_two_owners(ledger.ownerships()) == []
    assert ledger.owners_now() == {0: "b"}


def test_two_owners_are_found_with_the_time_they_overlap() -> None:
    events = [assigned(1, "a", 7), assigned(2, "b", 7), revoked(2.5, "a", 7), assigned(3, "c", 7)]
    found = find_two_owners(compute_ownerships(events, {}))
    assert found == [TwoOwners(7, "a", "b", 0.5), TwoOwners(7, "b", "c", inf)]


def test_a_dead_worker_owns_nothing() -> None:
    ledger = Ledger()
    ledger.add(assigned(1, "a", 0))
    ledger.add(assigned(8, "b", 0))
    assert len(find_two_owners(ledger.ownerships())) == 1
    ledger.note_death("a", 2)
    assert find_two_owners(ledger.ownerships()) == []


def test_commits_count_up_to_a_moment() -> None:
    ledger = Ledger()
    for event in (committed(1, "a", p0=5, p1=6), committed(3, "b", p0=9), committed(2, "a", p0=7)):
        ledger.add(event)
    assert ledger.committed_now() == ledger.committed(before_s=inf) == {0: 9, 1: 6}
    assert ledger.committed(before_s=3) == {0: 7, 1: 6}
    assert (ledger.count_commits(before_s=inf), ledger.count_commits(before_s=3)) == (4, 3)


def test_a_ledger_that_runs_on_keeps_only_the_last_commits() -> None:
    ledger = Ledger()
    ledger.keeps_commits = False
    for event in (committed(1, "a", p0=5), assigned(2, "b", 0), committed(3, "b", p0=9)):
        ledger.add(event)
    assert ledger.committed_now() == {0: 9}
    assert ledger.events == [assigned(2, "b", 0)]


def test_one_owner_holds_only_if_workers_and_server_say_so() -> None:
    good = {"billing": [Ownership(0, "a", 1, 2), Ownership(0, "b", 2, inf)]}
    bad = {"billing": [Ownership(0, "a", 1, 3), Ownership(0, "b", 2, inf)]}
    assert check_one_owner(good, [], 10).holds
    assert not check_one_owner(good, ["billing: partition 0 of a and b"], 10).holds
    found = check_one_owner(bad, [], 10)
    assert not found.holds
    assert found.evidence == "billing: partition 0 of a and b for 1000 ms"


def test_nothing_observed_proves_nothing() -> None:
    assert not check_one_owner({"billing": []}, [], 10).holds
    assert not check_one_owner({"billing": [Ownership(0, "a", 1, 2)]}, [], 0).holds
    assert not check_converged([]).holds
    assert not check_workers([], 0, 0).holds
    assert not check_commits(dataclasses.replace(OUTAGE, commits=0)).holds
    assert not check_restart(dataclasses.replace(OUTAGE, epochs_before={})).holds


def test_a_commit_may_be_followed_by_later_ones_but_not_be_gone() -> None:
    assert check_commits(OUTAGE).holds
    for found in ({0: 9, 1: 25}, {1: 25}, {}):
        broken = check_commits(dataclasses.replace(OUTAGE, found={"billing": found}))
        assert not broken.holds
        assert "partition 0 was acknowledged at 10" in broken.evidence


@pytest.mark.parametrize(("found", "holds"), [(99, False), (100, True), (101, True), (102, False)])
def test_the_audit_finds_what_was_acknowledged_or_on_its_way(found: int, holds: bool) -> None:
    assert check_commits(dataclasses.replace(OUTAGE, audit_found=found)).holds is holds


def test_a_restart_changes_nothing() -> None:
    assert check_restart(OUTAGE).holds
    assert not check_restart(dataclasses.replace(OUTAGE, moves=1)).holds
    other = dataclasses.replace(OUTAGE, epochs_after={"billing": (6, {"a": 6})})
    assert not check_restart(other).holds
    assert not check_restart(dataclasses.replace(OUTAGE, epochs_after={})).holds


def test_every_change_must_converge() -> None:
    changes = [Change("a joined", "g", 0.25, 12), Change("b was killed", "g", None, 1, "why")]
    assert check_converged(changes[:1]).holds
    assert check_converged(changes).evidence == "did not: b was killed"
    assert render_changes(changes) == [
        "a joined        0.25 s  12 partitions assigned",
        "b was killed  not converged  1 partition assigned  (why)",
    ]


def test_workers_that_end_by_themselves_and_lost_records_are_told() -> None:
    assert check_workers([], 10, 0).holds
    assert not check_workers(["kafka-1 ended with 1"], 10, 0).holds
    assert not check_workers([], 10, 1).holds


def view(*members: MemberView, state: str = "Stable", epoch: int = 3, target: int = 3) -> GroupView:
    return GroupView(1.0, "g", state, epoch, target, members)


A = MemberView("a", 3, "STABLE", (0, 2))
B = MemberView("b", 3, "STABLE", (1,))


def test_a_group_has_settled_when_all_members_share_all_partitions() -> None:
    assert is_settled(view(A, B), ["b", "a"], 3)
    assert not is_settled(None, ["a", "b"], 3)
    assert not is_settled(view(A, B), ["a"], 3)
    assert not is_settled(view(A, B), ["a", "b"], 4)
    assert not is_settled(view(A, B, state="Reconciling"), ["a", "b"], 3)
    assert not is_settled(view(A, B, target=2), ["a", "b"], 3)
    for other in (
        dataclasses.replace(B, epoch=2),
        dataclasses.replace(B, state="UNRELEASED_PARTITIONS"),
        dataclasses.replace(B, pending_revocation=(4,)),
    ):
        assert not is_settled(view(A, other), ["a", "b"], 3)


def test_a_partition_that_two_members_hold_is_found() -> None:
    assert find_double(view(A, B)) == []
    waiting = dataclasses.replace(B, pending_revocation=(2,))
    assert find_double(view(A, waiting)) == ["g: partition 2 of a and b"]


def test_the_longest_time_without_an_owner_is_between_two_of_them() -> None:
    rows = [
        Ownership(0, "a", 1.0, 5.0),
        Ownership(0, "b", 6.5, inf),
        Ownership(1, "a", 1.0, 10.0),
        Ownership(1, "b", 10.25, inf),
    ]
    assert compute_longest_gap_s(rows, 0.0) == 1.5
    assert compute_longest_gap_s(rows, 7.0) == 0.25
    assert compute_longest_gap_s(rows, 11.0) == 0.0
    overlapping = [Ownership(0, "a", 1.0, 9.0), Ownership(0, "b", 2.0, 3.0), *rows[1:2]]
    assert compute_longest_gap_s(overlapping, 0.0) == 0.0
