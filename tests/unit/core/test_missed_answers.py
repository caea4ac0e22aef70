"""A client whose connection broke may have missed a response, and may not ask again."""

from __future__ import annotations

from dataclasses import replace

from coordinator.runtime.members.missed_answers import TOLD_AGAIN_MAX
from model.log.records import MemberState
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from tests.support.virtual.server import VirtualServer


def missed() -> VirtualServer:
    """a@4 owns foo-0 and foo-2. It never learned of the others, and c gets them."""
    server = VirtualServer({"foo": 4, "bar": 1})
    server.join("g", "a", ["foo"])
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": range(4)}))
    server.join("g", "b", ["foo"])
    server.beat(server.heartbeat("g", "a", 2))
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0, 2)}))
    server.beat(server.heartbeat("g", "b", 3))
    server.beat(server.heartbeat("g", "b", 3, sub=["bar"], owned={"foo": (1, 3)}))
    assert server.beat(server.heartbeat("g", "a", 3)).member_epoch == 4
    server.beat(server.heartbeat("g", "b", 3, owned={}))
    lost = server.beat(server.heartbeat("g", "a", 4))
    assert (lost.member_epoch, server.names(lost.assignment)) == (4, {"foo": (0, 1, 2, 3)})
    server.join("g", "c", ["foo"])
    return server


def by_another_connection(server: VirtualServer) -> ConsumerGroupHeartbeatResponse:
    """A heartbeat of a without any change."""
    return server.beat(replace(server.heartbeat("g", "a", 4), wants_assignment=True))


def state_of(server: VirtualServer) -> MemberState:
    member = server.group("g").member("a")  # type: ignore[arg-type]
    assert member is not None
    return member.state


def test_what_a_member_may_not_know_that_it_has_is_told_before_it_is_to_give_it_up() -> None:
    """Bug: it got what it owned already, acknowledged nothing, and was removed by timeout."""
    server = missed()
    told = by_another_connection(server)
    assert server.names(told.assignment) == {"foo": (0, 1, 2, 3)}
    assert told.has_changes, "its next heartbeat is to come soon"
    server.beat(server.heartbeat("g", "a", 4, owned={"foo": range(4)}))
    assert state_of(server) is MemberState.UNREVOKED_PARTITIONS
    server.beat(server.heartbeat("g", "a", 4, owned={"foo": (0, 2)}))
    assert server.names(server.beat(server.heartbeat("g", "c", 5)).assignment) == {"foo": (1, 3)}


def test_who_knew_what_it_has_gives_it_up_with_its_next_heartbeat() -> None:
    server = missed()
    by_another_connection(server)
    told = server.beat(server.heartbeat("g", "a", 4))
    assert server.names(told.assignment) == {"foo": (0, 2)}
    assert state_of(server) is MemberState.UNREVOKED_PARTITIONS


def test_who_comes_by_another_connection_each_time_is_not_waited_for_for_ever() -> None:
    server = missed()
    for _ in range(TOLD_AGAIN_MAX):
        by_another_connection(server)
        assert state_of(server) is not MemberState.UNREVOKED_PARTITIONS
    told = by_another_connection(server)
    assert server.names(told.assignment) == {"foo": (0, 2)}
    assert state_of(server) is MemberState.UNREVOKED_PARTITIONS


def test_who_says_what_it_owns_is_not_waited_for() -> None:
    server = missed()
    command = server.heartbeat("g", "a", 4, owned={"foo": range(4)})
    told = server.beat(replace(command, wants_assignment=True))
    assert server.names(told.assignment) == {"foo": (0, 2)}
    server = missed()
    command = server.heartbeat("g", "a", 4, owned={"foo": (0, 2)})
    assert server.beat(replace(command, wants_assignment=True)).member_epoch == 5
