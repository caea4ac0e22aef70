"""What the demo in front of a cluster states, and what makes each statement false."""

from cli.demo.events import Event, Kind
from cli.demo.ledger import Ownership
from cli.demo.upstream.fronted_checks import (
    Kill,
    Stay,
    check_clients,
    check_duplicates,
    check_kill,
    check_members_there,
    check_owners,
    check_reads,
    check_stays,
)
from cli.demo.upstream.reads import Reads


def make_reads(*ranges: tuple[int, int]) -> Reads:
    reads = Reads()
    for first, end in ranges:
        reads.add(Event(0.0, "a", Kind.READ, offsets={0: end}, firsts={0: first}))
    return reads


def test_every_record_is_read() -> None:
    assert check_reads(make_reads((0, 10)), {0: 10}).holds
    found = check_reads(make_reads((0, 8)), {0: 10})
    assert (found.holds, found.evidence) == (False, "2 of 10 records were not")
    assert not check_reads(make_reads(), {}).holds


def test_no_owner_reads_twice() -> None:
    assert check_duplicates(make_reads((0, 5), (5, 9))).holds
    assert not check_duplicates(make_reads((0, 5), (4, 9))).holds
    assert not check_duplicates(make_reads()).holds


def test_never_two_owners() -> None:
    first = Ownership(0, "a", 1.0, 2.0)
    assert check_owners([first, Ownership(0, "b", 2.0, 3.0)]).holds
    assert "partition 0 of a and b" in check_owners([first, Ownership(0, "b", 1.5, 3.0)]).evidence
    assert not check_owners([]).holds


def test_what_was_acknowledged_is_in_the_cluster() -> None:
    assert check_kill(Kill({0: 10, 1: 5}, {0: 10, 1: 6}, 1.0)).holds
    assert not check_kill(Kill({0: 10}, {0: 9}, 1.0)).holds
    assert not check_kill(Kill({0: 10}, {}, 1.0)).holds
    assert not check_kill(Kill({}, {}, 1.0)).holds


def test_the_group_is_where_it_should_be() -> None:
    here = Stay("taken", "muster", "muster")
    assert check_stays([here]).evidence == "muster (taken)"
    assert not check_stays([here, Stay("back", "returning", "upstream")]).holds
    assert not check_stays([]).holds


def test_the_cluster_has_the_consumers_and_no_sentinel() -> None:
    assert check_members_there(["b", "a"], ("a", "b")).holds
    assert not check_members_there(["a", "b", "muster"], ("a", "b")).holds
    assert not check_members_there([], ("a", "b")).holds


def test_clients_do_not_fail() -> None:
    assert check_clients([], 0).holds
    assert not check_clients(["a ended with 1"], 0).holds
    assert not check_clients([], 3).holds
