"""How much one connection may do per event-loop iteration, and how much memory it may hold."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any

import pytest

from gateway.api import Api, RequestContext
from gateway.apis.api_registry import APIS
from gateway.apis.cluster.k18_api_versions import API as API_VERSIONS
from gateway.apis.offsets.k08_offset_commit import API as OFFSET_COMMIT
from gateway.connection.connection_turns import (
    ANSWER_BYTES,
    ARRIVALS_S,
    REQUESTS,
    REQUESTS_IN_A_CROWD,
    TURN_S,
)
from model.commands.offsets import COMMIT_PARTITIONS_MAX
from tests.support.gateway.wire_door import Door, Gateway
from tests.support.gateway.wire_rig import with_settings
from tests.support.gateway.wire_steps import COMMIT, commit_topics
from tests.support.wire.frames import frame, make_request
from tests.unit.gateway.connection.test_wire_connection import Held, ask, correlations

LIST_GROUPS, VERSIONS = 16, 18


class Sized:
    """An API that answers at once with so many bytes, or when the test tells it to."""

    def __init__(self, size: int = 10) -> None:
        self.size = size
        self.handled: list[RequestContext] = []
        self.on_request: Callable[[], None] = lambda: None
        self.waits: set[int] = set()

    def make(self, *, is_large: bool = False) -> Api:
        return Api(LIST_GROUPS, "Sized", range(6), self.handle, is_large=is_large)

    def handle(self, context: RequestContext, request: Any) -> None:
        self.handled.append(context)
        self.on_request()
        if context.correlation_id not in self.waits:
            context.reply_encoded(bytes(self.size))

    def answer(self, number: int) -> None:
        self.handled[number].reply_encoded(bytes(self.size))


def connect(*apis: Api, **changes: Any) -> Door:
    return Gateway(with_settings(**changes), apis=(*apis, API_VERSIONS)).connect()


def asked(*numbers: int) -> bytes:
    return b"".join(ask(number) for number in numbers)


def ask_versions(number: int) -> bytes:
    return frame(VERSIONS, 0, number, make_request(VERSIONS, 0))


def test_a_turn_is_over_after_so_many_requests_and_the_next_ones_follow_in_order() -> None:
    sized = Sized()
    door = connect(sized.make())
    door.send(asked(*range(1_000)))
    assert len(sized.handled) == REQUESTS
    assert not door.transport.is_reading
    turns = 0
    while door.gateway.clock.turn():
        turns += 1
        assert len(sized.handled) <= REQUESTS * (turns + 1)
    assert correlations(door) == list(range(1_000))
    assert door.transport.is_reading
    assert door.gateway.shared.held.requests == 0


def test_a_request_of_another_is_served_as_it_comes() -> None:
    sized = Sized()
    door = connect(sized.make())
    other = door.gateway.connect()
    door.send(asked(*range(1_000)))
    other.send(ask_versions(7))
    assert correlations(other) == [7]


def test_a_turn_is_over_after_some_milliseconds() -> None:
    sized = Sized()
    door = connect(sized.make())
    sized.on_request = lambda: door.gateway.clock.pass_by(TURN_S * 0.6)
    door.send(asked(*range(10)))
    assert len(sized.handled) == 2
    door.gateway.clock.turn()
    assert len(sized.handled) == 4


def test_a_turn_is_over_after_so_many_bytes_of_answers() -> None:
    sized = Sized(ANSWER_BYTES // 2)
    door = connect(sized.make())
    door.send(asked(*range(10)))
    assert len(sized.handled) == 2
    door.gateway.clock.advance(0.001)
    assert len(door.frames()) == 10


def test_all_that_wait_have_a_turn_together_and_a_single_request_none_of_it() -> None:
    """However many connections flood, an iteration does about as much as one of them may."""
    sized = Sized()
    gateway = Gateway(apis=(sized.make(), API_VERSIONS))
    floods = [gateway.connect() for _ in range(50)]
    for flood in floods:
        flood.send(asked(*range(200)))
    first = REQUESTS + (len(floods) - 1) * REQUESTS_IN_A_CROWD
    assert len(sized.handled) == first
    sized.on_request = lambda: gateway.clock.pass_by(TURN_S)
    honest = gateway.connect()
    for number in range(20):
        handled = len(sized.handled)
        gateway.clock.turn()
        assert len(sized.handled) - handled <= 2
        honest.send(ask_versions(number))
    assert correlations(honest) == list(range(20))


def test_however_many_come_at_once_a_turn_ends_and_single_requests_are_next() -> None:
    """Bug: a thousand short-lived clients stretched an iteration until nobody could connect."""
    sized = Sized()
    gateway = Gateway(apis=(sized.make(), API_VERSIONS))
    sized.on_request = lambda: gateway.clock.pass_by(TURN_S)
    floods = [gateway.connect() for _ in range(100)]
    for flood in floods:
        flood.send(asked(*range(200)))
    most = int(ARRIVALS_S / TURN_S) + 3
    assert len(sized.handled) <= most
    honest = gateway.connect()
    honest.send(ask_versions(7))
    assert correlations(honest) == [], "it comes when the turn has taken long"
    gateway.clock.turn()
    assert correlations(honest) == [7]


def test_nothing_more_is_done_for_many_requests_of_who_has_left() -> None:
    """A connection that has to wait is not read, so the loop does not see its end."""
    sized = Sized()
    here, there = socket.socketpair()
    with here, there:
        door = connect(sized.make())
        door.transport.socket = here
        door.send(asked(*range(1_000)))
        door.gateway.clock.turn()
        assert len(sized.handled) == 2 * REQUESTS
        there.close()
        door.gateway.clock.advance(1)
    assert len(sized.handled) == 2 * REQUESTS
    assert not door.transport.is_open


def test_a_last_request_of_who_has_left_is_handled() -> None:
    """The client commits and leaves its group without waiting for the responses."""
    sized = Sized()
    gateway = Gateway(apis=(sized.make(), API_VERSIONS))
    sized.on_request = lambda: gateway.clock.pass_by(TURN_S)
    for _ in range(10):
        gateway.connect().send(asked(*range(200)))
    here, there = socket.socketpair()
    with here, there:
        door = gateway.connect()
        door.transport.socket = here
        before = len(sized.handled)
        door.send(asked(1, 2))
        there.close()
        assert len(sized.handled) == before
        for _ in range(20):
            gateway.clock.turn()
    assert sum(context.client is door.connection for context in sized.handled) == 2


def test_nothing_more_is_done_for_who_has_gone() -> None:
    sized = Sized()
    door = connect(sized.make())
    door.send(asked(*range(1_000)))
    door.transport.close()
    door.gateway.clock.turn()
    assert len(sized.handled) == REQUESTS
    door.connection.connection_lost(None)
    assert not door.gateway.clock.turn()
    assert door.gateway.shared.held.requests == 0


def test_nothing_more_is_done_for_who_reads_no_answers() -> None:
    sized = Sized()
    door = connect(sized.make())
    door.send(asked(*range(1_000)))
    door.connection.pause_writing()
    door.gateway.clock.advance(1)
    assert len(sized.handled) == REQUESTS
    door.connection.resume_writing()
    door.gateway.clock.advance(1)
    assert len(sized.handled) == 1_000


def test_answers_that_wait_for_one_before_them_count_as_those_that_are_not_read() -> None:
    sized = Sized(400)
    sized.waits = {0}
    door = connect(sized.make(), gateway_response_buffer_bytes=1_000)
    door.send(asked(*range(10)))
    assert len(sized.handled) == 4
    door.gateway.clock.advance(1)
    assert len(sized.handled) == 4
    sized.answer(0)
    door.gateway.clock.advance(1)
    assert correlations(door) == list(range(10))


def test_of_answers_that_may_be_large_one_is_in_the_making() -> None:
    sized = Sized()
    sized.waits = {1, 3}
    door = connect(sized.make(is_large=True))
    door.send(ask(1) + ask_versions(2) + ask(3) + ask_versions(4))
    assert [context.correlation_id for context in sized.handled] == [1]
    sized.answer(0)
    assert correlations(door) == [1, 2]
    door.gateway.clock.turn()
    assert [context.correlation_id for context in sized.handled] == [1, 3]
    sized.answer(1)
    assert correlations(door) == [3, 4]


@pytest.mark.parametrize("is_behind_a_large_one", [False, True])
def test_of_requests_that_take_many_turns_one_is_in_the_making(is_behind_a_large_one: bool) -> None:
    """A commit of too many partitions is refused in slices; its request is held until then."""
    sized = Sized()
    sized.waits = {0}
    door = connect(sized.make(is_large=True), OFFSET_COMMIT)
    rows = dict.fromkeys(range(COMMIT_PARTITIONS_MAX + 1), (1, ""))
    commit = make_request(COMMIT, 9, group_id="g", topics=commit_topics(9, "t", rows))
    if is_behind_a_large_one:
        door.send(ask(0))
    door.send(b"".join(frame(COMMIT, 9, number, commit) for number in range(1, 5)))
    most = 0
    while door.gateway.clock.turn():
        making = [context for context in door.connection.unanswered if not context.answered]
        most = max(most, len(making) - is_behind_a_large_one)
    assert most == 1
    if is_behind_a_large_one:
        sized.answer(0)
    assert correlations(door) == [*range(not is_behind_a_large_one, 5)]


def test_the_answers_that_may_be_large_are_known() -> None:
    large = {api.name for api in APIS if api.is_large}
    assert large >= {"Fetch", "Metadata", "OffsetFetch", "ListGroups", "DescribeConfigs"}
    assert "OffsetCommit" not in large, "clients pipeline them"
    assert "JoinGroup" not in large, "a second one ends the wait of the first"


@pytest.mark.parametrize("stalled", [0, 1])
def test_of_all_who_read_no_answers_the_one_goes_who_holds_the_most_for_the_longest(
    stalled: int,
) -> None:
    sized = Sized(100_000)
    gateway = Gateway(
        with_settings(gateway_response_total_bytes=1_000_000), apis=(sized.make(), API_VERSIONS)
    )
    doors = [gateway.connect() for _ in range(3)]
    for door in doors:
        door.transport.unsent = 300_000
        door.send(ask(1))
    doors[stalled].connection.pause_writing()
    gateway.clock.advance(10)
    assert not any(door.transport.was_aborted for door in doors)
    reader = doors[2]
    reader.transport.unsent = 500_000
    reader.send(ask(2))
    gateway.clock.turn()
    assert [door.transport.was_aborted for door in doors] == [stalled == 0, stalled == 1, False]
    assert gateway.shared.held.answers <= 1_000_000
    assert gateway.shared.refusals.counts == {"unread-answers": 1}
    reader.lose()
    assert gateway.shared.held.answers == 300_000


def test_who_is_refused_is_not_waited_for_with_much_unread() -> None:
    door = Gateway(apis=(Held().api,)).connect()
    door.transport.unsent = 100_000
    door.send(struct.pack(">i", -1))
    assert door.transport.was_aborted
