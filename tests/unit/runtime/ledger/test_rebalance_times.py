"""How long groups rebalance, and how many do."""

from __future__ import annotations

from coordinator.runtime.loop.stats import Histogram
from tests.support.virtual.server import VirtualServer
from tests.unit.runtime.ledger.test_classic_ledger import join, make_server, sync


def times(server: VirtualServer, kind: str) -> tuple[int, float]:
    """How many have ended, and how long they took together."""
    histogram: Histogram = server.runtime.stats.rebalance_seconds[kind]
    return sum(histogram.counts), round(histogram.sum_s, 3)


def test_a_classic_group_rebalances_until_the_leader_has_assigned() -> None:
    server = make_server()
    join(server, "a")
    server.advance(40)
    assert list(server.runtime.find_rebalance_ages_ms()) == [(True, 41)]
    assert times(server, "classic") == (0, 0)
    sync(server, 1, "a")
    assert list(server.runtime.find_rebalance_ages_ms()) == []
    assert times(server, "classic") == (1, 0.041)
    assert server.runtime.stats.classic_rebalance_causes == {"member_joined": 1}
    assert times(server, "consumer") == (0, 0)


def test_rebalances_that_overtake_each_other_are_one() -> None:
    server = make_server()
    join(server, "a")
    sync(server, 1, "a")
    join(server, "b")
    server.advance(500)
    join(server, "a", is_known=True)
    join(server, "c")
    server.advance(10)
    for each in "ab":
        join(server, each, is_known=True)
    sync(server, 3, "a", "b", "c")
    count, took_s = times(server, "classic")
    assert count == 2
    assert took_s > 0.51
    assert server.runtime.stats.classic_rebalance_causes["member_joined"] == 3


def test_a_consumer_group_rebalances_until_all_have_their_partitions() -> None:
    server = VirtualServer({"foo": 4})
    server.ask(server.join_command("g", "a", ["foo"]))
    assert times(server, "consumer") == (1, 0)
    server.ask(server.join_command("g", "b", ["foo"]))
    server.advance(3_000)
    assert list(server.runtime.find_rebalance_ages_ms()) == [(False, 3_000)]
    server.ask(server.join_command("g", "c", ["foo"]))
    server.advance(1_000)
    assert list(server.runtime.find_rebalance_ages_ms()) == [(False, 4_000)]
    for member in "abc":
        server.leave("g", member)
    assert list(server.runtime.find_rebalance_ages_ms()) == []
    assert times(server, "consumer") == (2, 4)
