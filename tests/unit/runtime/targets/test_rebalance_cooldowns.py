"""The rebalance cooldown of a large group lasts until its members have followed the target."""

from __future__ import annotations

import pytest

from coordinator.core.state.group_epochs import compute_target_cost
from coordinator.runtime.targets import quick_targets, rebalance_cooldowns, target_waits
from tests.support.virtual.server import VirtualServer

REST_MS = 3_000
PARTITIONS = 20
OWNERS = ("m1", "m2")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> VirtualServer:
    """Two members share twenty partitions, a large group here, and a third has joined."""
    server = VirtualServer({"foo": PARTITIONS})
    for name in OWNERS:
        join(server, name)
    follow(server)
    cost = compute_target_cost(3, PARTITIONS)
    monkeypatch.setattr(quick_targets, "ALWAYS_INLINE_SIZE", 1)
    monkeypatch.setattr(target_waits, "ALWAYS_INLINE_SIZE", 1)
    monkeypatch.setattr(rebalance_cooldowns, "PARTITIONS_PER_REST_MS", cost / REST_MS)
    join(server, "m3")
    assert target_epoch(server) == 4
    return server


def join(server: VirtualServer, name: str) -> None:
    server.submit(server.join_command("g", name, ["foo"]))
    server.settle()


def follow(server: VirtualServer) -> None:
    """All members revoke what they must, and then take what they are assigned."""
    for _ in range(3):
        for name in [member.member_id for member in server.group("g").members()]:
            follow_once(server, name)


def follow_once(server: VirtualServer, name: str) -> None:
    server.beat(server.acknowledge_command("g", name))


def target_epoch(server: VirtualServer) -> int:
    return server.group("g").target_epoch


def test_who_joins_while_others_are_on_their_way_is_in_the_next_target(
    server: VirtualServer,
) -> None:
    join(server, "m4")
    join(server, "m5")
    server.advance(REST_MS // 2)
    assert (server.group("g").group_epoch, target_epoch(server)) == (6, 4)


def test_the_rest_ends_when_all_have_followed_and_nobody_comes(server: VirtualServer) -> None:
    join(server, "m4")
    follow(server)
    server.advance(rebalance_cooldowns.QUIET_MS)
    assert target_epoch(server) == 5


def test_a_group_that_has_followed_waits_for_no_more_than_others_who_come(
    server: VirtualServer,
) -> None:
    follow(server)
    join(server, "m4")
    server.advance(rebalance_cooldowns.QUIET_MS)
    assert target_epoch(server) == 5


def test_who_come_one_after_another_are_in_one_target(server: VirtualServer) -> None:
    follow(server)
    for number in range(4, 14):
        join(server, f"m{number}")
        server.advance(rebalance_cooldowns.QUIET_MS // 2)
        assert target_epoch(server) == 4
    server.advance(2 * rebalance_cooldowns.QUIET_MS)
    assert target_epoch(server) == 14


def test_who_does_not_follow_makes_nobody_wait_longer(server: VirtualServer) -> None:
    join(server, "m4")
    server.advance(REST_MS + rebalance_cooldowns.QUIET_MS)
    assert target_epoch(server) == 5
