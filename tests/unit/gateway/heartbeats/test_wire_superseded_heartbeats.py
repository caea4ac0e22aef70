"""Clients that move to another connection while one of their heartbeats is parked.

The old connection is half open: the client is gone, and no FIN has said so. Nobody may speak for
the member from there: it would acknowledge a revocation that nobody made, take news to a dead
socket, take a subscription back, and keep a dead member alive. The real coordinator in virtual
time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.codec.kio_schema import request_schema
from gateway.wire_clock import Timer
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.errors import ErrorCode
from model.ids import GroupId, MemberId
from model.log.records import MemberState
from tests.support.gateway.wire_door import Door, Gateway
from tests.support.virtual.scheduler import VirtualScheduler
from tests.support.virtual.server import CALLER, VirtualServer
from tests.support.wire.fields import beat, join

HEARTBEAT, JOIN_GROUP, VERSIONS = 68, 11, 18
wire = request_schema(HEARTBEAT)
G, Z = GroupId("g"), MemberId("z")
PARK_MS = 600


class DoorClock:
    """The virtual server's clock, for the listener."""

    def __init__(self, scheduler: VirtualScheduler) -> None:
        self._scheduler = scheduler

    def time(self) -> float:
        return self._scheduler.now_ms / 1_000

    def call_later(self, delay: float, callback: Callable[[], object]) -> Timer:
        def call() -> None:
            callback()

        return self._scheduler.call_later_ms(round(delay * 1_000), call)


class Rig:
    """A server with topics t (4 partitions) and u (2), and its Kafka listener."""

    def __init__(self) -> None:
        self.server = VirtualServer({"t": 4, "u": 2})
        self.gateway = Gateway(
            coordinator=self.server.runtime, clock=DoorClock(self.server.scheduler)
        )
        self.topic_id = self.server.topic("t")

    def connect(self) -> Door:
        return self.gateway.connect()

    def send(self, door: Door, fields: dict[str, Any]) -> list[Any]:
        """Send a heartbeat; return the responses that are there at once."""
        door.request(HEARTBEAT, 1, 7, **fields)
        self.server.settle()
        return [answer for _, answer in door.answers(HEARTBEAT, 1)]

    def ask(self, door: Door, fields: dict[str, Any]) -> Any:
        [answer] = self.send(door, fields)
        assert answer.error_code == 0, answer
        return answer

    def park(self, door: Door, fields: dict[str, Any]) -> None:
        """Send heartbeats until one is parked for as long as a resting member's."""
        for _ in range(30):
            if not self.send(door, fields):
                self.server.advance(PARK_MS - 200)
                if not door.answers(HEARTBEAT, 1):
                    self.server.advance(PARK_MS)
                    door.answers(HEARTBEAT, 1)
                    assert self.send(door, fields) == []
                    return
            self.server.advance(100)
        raise AssertionError("never parked")

    def owned(self, partitions: tuple[int, ...]) -> tuple[Any, ...]:
        if not partitions:
            return ()
        return (wire.TopicPartitions(topic_id=self.topic_id, partitions=partitions),)

    def member(self, name: str = "z") -> Any:
        [group] = self.server.runtime.groups()
        return group.member(MemberId(name))

    def heard_ms(self) -> int:
        entry = self.server.runtime.liveness.get(G, Z)
        assert entry is not None
        return entry.last_heard_ms


def partitions_of(answer: Any) -> tuple[int, ...]:
    if answer.assignment is None:
        return ()
    return tuple(p for topic in answer.assignment.topic_partitions for p in topic.partitions)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def wait_for_a(rig: Rig, other: Door, old: Door) -> tuple[int, int, tuple[int, ...]]:
    """a holds all of t; z has joined by ``old``, where its heartbeat "I own nothing" is parked.

    The epochs of both, and what a is to keep.
    """
    epoch = rig.ask(other, join("g", "a", ("t",))).member_epoch
    joined = rig.ask(old, join("g", "z", ("t",)))
    told = rig.ask(other, beat("g", "a", epoch))
    rig.park(old, beat("g", "z", joined.member_epoch, topic_partitions=()))
    return joined.member_epoch, told.member_epoch, partitions_of(told)


def test_a_revocation_is_not_acknowledged_by_a_heartbeat_of_before_it(rig: Rig) -> None:
    old, new, other, third = (rig.connect() for _ in range(4))
    epoch, epoch_of_a, kept = wait_for_a(rig, other, old)
    rig.ask(new, beat("g", "z", epoch, topic_partitions=()))
    rig.ask(other, beat("g", "a", epoch_of_a, topic_partitions=rig.owned(kept)))
    told = rig.ask(new, beat("g", "z", epoch, topic_partitions=()))
    mine = partitions_of(told)
    assert len(mine) == 2
    joined = rig.ask(third, join("g", "m", ("t",)))
    rig.ask(new, beat("g", "z", told.member_epoch, topic_partitions=rig.owned(mine)))
    assert rig.member().state is MemberState.UNREVOKED_PARTITIONS
    rig.server.advance(5 * PARK_MS)
    assert rig.member().state is MemberState.UNREVOKED_PARTITIONS, "z has said nothing since"
    answer = rig.ask(third, beat("g", "m", joined.member_epoch, topic_partitions=()))
    assert not set(partitions_of(answer)) & set(mine), "z reads them still"


def test_what_was_owned_when_it_was_parked_acknowledges_nothing_at_its_end(rig: Rig) -> None:
    """On one connection: the client takes what it was assigned while its heartbeat is parked.

    A heartbeat that does not own a partition yet must not acknowledge its revocation.
    """
    old, third = rig.connect(), rig.connect()
    epoch = rig.ask(old, join("g", "z", ("t",))).member_epoch
    assert len(rig.member().assigned) == 4
    rig.park(old, beat("g", "z", epoch, topic_partitions=()))
    rig.send(third, join("g", "m", ("t",)))
    [told] = [answer for _, answer in old.answers(HEARTBEAT, 1)]
    assert len(partitions_of(told)) == 2
    assert rig.member().state is MemberState.UNREVOKED_PARTITIONS


def test_news_are_for_the_connection_that_the_client_has_now(rig: Rig) -> None:
    old, new, other = (rig.connect() for _ in range(3))
    epoch, epoch_of_a, kept = wait_for_a(rig, other, old)
    # All that it knows, as Java's client sends it when its connection was lost.
    rig.ask(
        new,
        beat("g", "z", epoch) | {**join("g", "z", ("t",)), "member_epoch": epoch},
    )
    [found] = [answer for _, answer in old.answers(HEARTBEAT, 1)]
    assert (found.member_epoch, found.assignment) == (epoch, None), "what was so when it came"
    rig.ask(other, beat("g", "a", epoch_of_a, topic_partitions=rig.owned(kept)))
    told = rig.send(new, beat("g", "z", epoch))
    assert [len(partitions_of(answer)) for answer in told] == [2]
    assert old.frames() == []


def test_news_taken_by_a_late_heartbeat_of_the_old_connection_are_said_again(rig: Rig) -> None:
    """Requests of the broken connection arrive after the client has moved to another one."""
    old, new, other = (rig.connect() for _ in range(3))
    epoch, epoch_of_a, kept = wait_for_a(rig, other, old)
    rig.ask(new, beat("g", "z", epoch))
    assert len(old.frames()) == 1
    rig.ask(other, beat("g", "a", epoch_of_a, topic_partitions=rig.owned(kept)))
    late = rig.ask(old, beat("g", "z", epoch))
    assert len(partitions_of(late)) == 2, "it takes them"
    told = rig.ask(new, beat("g", "z", epoch))
    assert partitions_of(told) == partitions_of(late)


def test_a_changed_subscription_is_not_taken_back(rig: Rig) -> None:
    old, new = rig.connect(), rig.connect()
    joined = rig.ask(old, join("g", "z", ("t",)))
    everything = join("g", "z", ("t",), topic_partitions=rig.owned(partitions_of(joined)))
    rig.park(old, everything | {"member_epoch": joined.member_epoch})
    changed = rig.ask(
        new,
        everything | {"member_epoch": joined.member_epoch, "subscribed_topic_names": ("t", "u")},
    )
    rig.server.advance(5 * PARK_MS)
    [group] = rig.server.runtime.groups()
    assert dict(group.subscribed_names) == {"t": 1, "u": 1}
    assert group.group_epoch == changed.member_epoch


def test_the_end_of_a_park_does_not_take_a_subscription_back_either(rig: Rig) -> None:
    """The server's own heartbeat reports nothing; an invalid ticket makes the server send it."""
    door, other = rig.connect(), rig.connect()
    joined = rig.ask(door, join("g", "z", ("t",)))
    rig.park(door, beat("g", "z", joined.member_epoch))
    rig.send(other, join("g", "idle", ()))
    asked: list[Any] = []
    submit = rig.server.runtime.submit

    def note(command: Any, reply: Any) -> None:
        asked.append(command)
        submit(command, reply)

    rig.server.runtime.submit = note  # type: ignore[method-assign]
    rig.server.advance(PARK_MS)
    caller = asked[0].caller
    assert asked == [ConsumerGroupHeartbeat(caller, G, Z, joined.member_epoch, by_server=True)]


def test_a_park_renews_no_session(rig: Rig) -> None:
    """By a change, and after the park time with an invalid ticket."""
    old, other = rig.connect(), rig.connect()
    joined = rig.ask(old, join("g", "z", ("t",)))
    rig.park(old, beat("g", "z", joined.member_epoch))
    heard_ms = rig.heard_ms()
    rig.server.advance(100)
    rig.send(other, join("g", "a", ("t",)))
    assert len(old.frames()) == 1, "news has ended it"
    assert rig.heard_ms() == heard_ms


def test_a_heartbeat_that_is_overtaken_before_its_answer_is_not_parked(rig: Rig) -> None:
    old, new = rig.connect(), rig.connect()
    epoch = rig.ask(old, join("g", "z", ("t",))).member_epoch
    rig.park(old, beat("g", "z", epoch))
    rig.server.scheduler.blocking_ms = lambda: 10
    # The group is not durable for a while, so neither are answers given.
    rig.send(rig.connect(), join("g", "idle", ()))
    old.request(HEARTBEAT, 1, 8, **beat("g", "z", epoch, topic_partitions=()))
    new.request(HEARTBEAT, 1, 9, **beat("g", "z", epoch))
    rig.server.advance(50)
    assert old.connection.is_idle
    assert old.connection.heartbeats.members == {}


def by_heartbeat(rig: Rig, epoch: int) -> None:
    rig.send(rig.connect(), beat("g", "z", epoch))


def by_leave(rig: Rig, epoch: int) -> None:
    rig.send(rig.connect(), beat("g", "z", -1))


def by_session(rig: Rig, epoch: int) -> None:
    """A Join over gRPC, as its session submits it."""
    rig.server.ask(ConsumerGroupHeartbeat(CALLER, G, Z, epoch, owned=()))


def by_leave_over_grpc(rig: Rig, epoch: int) -> None:
    rig.server.ask(ConsumerGroupLeave(CALLER, G, Z, -1))


def by_join_group(rig: Rig, epoch: int) -> None:
    protocol = request_schema(JOIN_GROUP, 6).JoinGroupRequestProtocol(
        name="range", metadata=b"\0\1\0\0\0\1\0\1t\0\0\0\0\0\0\0\0"
    )
    rig.connect().request(
        JOIN_GROUP,
        6,
        5,
        group_id="g",
        session_timeout=30_000,
        rebalance_timeout=60_000,
        member_id="z",
        protocol_type="consumer",
        protocols=(protocol,),
    )
    rig.server.settle()


@pytest.mark.parametrize(
    "speak", [by_heartbeat, by_leave, by_session, by_leave_over_grpc, by_join_group]
)
def test_whatever_the_member_says_elsewhere_ends_the_park(
    rig: Rig, speak: Callable[[Rig, int], None]
) -> None:
    """The old connection still gets its response: it may be alive and serve other members."""
    old = rig.connect()
    epoch = rig.ask(old, join("g", "z", ("t",))).member_epoch
    rig.park(old, beat("g", "z", epoch))
    speak(rig, epoch)
    [(_, answer)] = old.answers(HEARTBEAT, 1)
    assert (answer.error_code, answer.member_epoch) == (0, epoch)
    assert answer.assignment is None
    old.request(VERSIONS, 0, 9)
    assert len(old.frames()) == 1
    rig.server.advance(5 * PARK_MS)
    assert old.frames() == []


def test_who_was_removed_is_told(rig: Rig) -> None:
    """The member itself sent nothing: an administrator removed it, or its session timed out."""
    old = rig.connect()
    epoch = rig.ask(old, join("g", "z", ("t",))).member_epoch
    rig.park(old, beat("g", "z", epoch))
    rig.connect().request(
        13,
        3,
        5,
        group_id="g",
        members=(request_schema(13, 3).MemberIdentity(member_id="z", group_instance_id=None),),
    )
    rig.server.settle()
    [(_, answer)] = old.answers(HEARTBEAT, 1)
    assert answer.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)


def test_a_client_that_has_two_connections_is_known_by_the_one_it_used_last(rig: Rig) -> None:
    one, two = rig.connect(), rig.connect()
    epoch = rig.ask(one, join("g", "z", ("t",))).member_epoch
    for _ in range(3):
        for door in (two, one):
            answer = rig.ask(door, beat("g", "z", epoch))
            assert len(partitions_of(answer)) == 4, "it is said again, whoever heard it before"
            assert rig.gateway.heartbeats.members == 1
    two.lose()
    one.lose()
    assert rig.gateway.heartbeats.members == 0
