"""One connection: response order, limits on waiting requests, deadlines. In virtual time."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from gateway.api import Api, ClientConnection, RequestContext
from gateway.apis.cluster.k18_api_versions import API as API_VERSIONS
from gateway.codec.decoding_in_slices import SLICE as DECODED_AT_ONCE
from gateway.codec.decoding_in_slices import SLICE_BYTES
from gateway.codec.kio_schema import response_schema
from gateway.commits.commit_templates import PendingCommit
from gateway.quotas.metered_connection import meter
from gateway.wire_listener import WireListener
from model.errors import ErrorCode
from security.quotas.client_quotas import ClientQuotas
from tests.support.gateway.wire_door import PLAIN, Door, Gateway
from tests.support.gateway.wire_rig import with_settings
from tests.support.wire.frames import frame, make_request
from tests.unit.gateway.codec.test_wire_hand_codecs import make_commit

COMMIT, LIST_GROUPS = 8, 16
wire = response_schema(LIST_GROUPS)


class Held:
    """An API whose requests wait until the test answers them."""

    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []
        self.on_request: Callable[[int], None] = lambda number: None
        self.api = Api(LIST_GROUPS, "Held", range(6), self.handle, self.failed)

    def handle(self, context: RequestContext, request: Any) -> None:
        self.contexts.append(context)
        self.on_request(len(self.contexts) - 1)

    def failed(self, context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
        return wire.ListGroupsResponse(throttle_time=0, error_code=code, groups=())

    def answer(self, number: int) -> None:
        self.contexts[number].reply(
            wire.ListGroupsResponse(throttle_time=0, error_code=0, groups=())
        )


SHARED_MAX = 30
"""Attributes outside of slots; with more, Python gives each instance a dictionary of its own."""


def held_door(**changes: Any) -> tuple[Held, Door]:
    held = Held()
    return held, Gateway(with_settings(**changes), apis=(held.api, API_VERSIONS)).connect()


def correlations(door: Door) -> list[int]:
    return [struct.unpack_from(">i", data)[0] for data in door.frames()]


def ask(number: int) -> bytes:
    return frame(LIST_GROUPS, 4, number, make_request(LIST_GROUPS, 4))


def test_answers_leave_in_the_order_of_the_requests() -> None:
    held, door = held_door()
    door.send(ask(10) + ask(11) + ask(12))
    held.answer(2)
    held.answer(1)
    assert correlations(door) == []
    held.answer(0)
    assert correlations(door) == [10, 11, 12]


class DurableCommits:
    """Accepts every commit and makes it durable at once."""

    def serve(self, door: ClientConnection, frame: bytes, now: float) -> PendingCommit | None:
        if len(frame) != 4 + int.from_bytes(frame[:4], "big"):
            return None
        pending = PendingCommit(door, struct.pack(">i", 5) + frame[8:12] + b"\0")
        pending.answered = True
        return pending


def test_a_kept_commit_is_not_answered_before_what_came_before_it() -> None:
    """The handler of a later request answers an earlier one, within one read.

    A member's second JoinGroup ends the wait of its first.
    """
    held, door = held_door()
    door.connection.repeats[8] = DurableCommits()
    held.on_request = lambda number: held.answer(0) if number == 1 else None
    commit = frame(8, 9, 11, b"")
    door.send(ask(10) + commit)
    assert correlations(door) == []
    door.send(ask(12))
    assert correlations(door) == [10, 11]
    door.send(commit + ask(13))
    held.answer(1)
    held.answer(2)
    assert correlations(door) == [12, 11, 13]


def test_same_correlation_id_twice_is_answered_twice() -> None:
    held, door = held_door()
    door.send(ask(10) + ask(10))
    held.answer(0)
    held.answer(1)
    assert correlations(door) == [10, 10]


def test_request_without_an_answer_lets_the_next_one_pass() -> None:
    held, door = held_door()
    door.send(ask(10) + ask(11))
    held.answer(1)
    held.contexts[0].reply_nothing()
    assert correlations(door) == [11]


def test_frames_may_come_in_any_pieces() -> None:
    held, door = held_door()
    whole = ask(10) + ask(11) + ask(12)
    for at in range(len(whole)):
        door.send(whole[at : at + 1])
    assert len(held.contexts) == 3
    assert door.gateway.shared.held.requests == 0


def test_pipelined_requests_are_bounded_and_reading_pauses() -> None:
    held, door = held_door(gateway_pipelined_requests_max=4)
    door.send(b"".join(ask(number) for number in range(10)))
    assert len(held.contexts) == 4
    assert not door.transport.is_reading
    door.send(ask(10))
    assert len(held.contexts) == 4
    answered = 0
    while answered < 11:
        held.answer(answered)
        answered += 1
        door.gateway.clock.advance(0.001)
        assert len(held.contexts) - answered <= 4
    assert correlations(door) == list(range(11))
    assert door.transport.is_reading
    assert door.gateway.shared.held.requests == 0


def test_what_comes_while_reading_is_paused_waits_too() -> None:
    """A loop may deliver once more after ``pause_reading``."""
    held, door = held_door(gateway_pipelined_requests_max=2)
    door.send(ask(0) + ask(1))
    door.send(ask(2))
    assert len(held.contexts) == 2
    for number in range(3):
        held.answer(number)
        door.gateway.clock.advance(0.001)
    assert correlations(door) == [0, 1, 2]


def test_ten_thousand_requests_at_once_are_all_answered() -> None:
    door = Gateway(apis=(API_VERSIONS,)).connect()
    request = frame(18, 0, 1, make_request(18, 0))
    door.send(request * 10_000)
    assert len(door.frames()) < 10_000
    door.gateway.clock.advance(0.001)
    assert len(door.frames()) > 9_000
    assert door.transport.is_reading


def test_reading_pauses_while_the_client_takes_no_answers() -> None:
    _, door = held_door()
    door.connection.pause_writing()
    assert not door.transport.is_reading
    door.connection.resume_writing()
    assert door.transport.is_reading


def test_client_that_reads_no_answers_is_cut_off() -> None:
    _, door = held_door(gateway_response_stall_timeout_ms=10_000)
    door.connection.pause_writing()
    door.transport.unsent = 1
    clock = door.gateway.clock
    clock.advance(9)
    door.connection.check_deadlines(clock.time())
    assert door.transport.is_open
    clock.advance(2)
    door.connection.check_deadlines(clock.time())
    assert not door.transport.is_open
    clock.advance(6)
    assert door.transport.was_aborted


def test_slow_sender_is_cut_off_however_steadily_it_drips() -> None:
    held, door = held_door(gateway_request_read_timeout_ms=10_000)
    door.send(ask(1))
    held.answer(0)
    whole = ask(10) + bytes(100)
    for at in range(9):
        door.send(whole[at : at + 1])
        door.gateway.clock.advance(1)
        door.connection.check_deadlines(door.gateway.clock.time())
        assert door.transport.is_open
    for at in range(9, 12):
        door.send(whole[at : at + 1])
        door.gateway.clock.advance(1)
        door.connection.check_deadlines(door.gateway.clock.time())
        if not door.transport.is_open:
            break
    assert not door.transport.is_open
    assert door.gateway.shared.refusals.counts == {"slow-sender": 1}
    assert door.gateway.shared.held.requests == 0


def test_sender_whose_requests_arrive_in_pieces_but_arrive_is_not_slow() -> None:
    held, door = held_door(gateway_request_read_timeout_ms=10_000)
    stream = b"".join(ask(number) for number in range(20))
    size = len(ask(0))
    door.send(stream[: size // 2])
    for number in range(1, 20):
        door.gateway.clock.advance(6)
        door.send(stream[size * number - size // 2 : size * (number + 1) - size // 2])
        held.answer(number - 1)
        door.connection.check_deadlines(door.gateway.clock.time())
        assert door.transport.is_open


def test_idle_connection_is_closed_but_one_that_waits_for_an_answer_is_not() -> None:
    held, waiting = held_door(connections_max_idle_ms=60_000)
    idle = waiting.gateway.connect()
    idle.send(ask(1))
    held.answer(0)
    waiting.send(ask(1))
    waiting.gateway.clock.advance(61)
    for door in (idle, waiting):
        door.connection.check_deadlines(door.gateway.clock.time())
    assert not idle.transport.is_open
    assert waiting.transport.is_open


def test_who_holds_up_requests_is_closed_and_not_who_comes_next() -> None:
    held, door = held_door(queued_max_request_bytes=100_000)
    gateway = door.gateway
    head = struct.pack(">i", 90_000)
    holders = [gateway.connect() for _ in range(2)]
    holders[0].send(head + bytes(40_000))
    gateway.clock.advance(5)
    holders[1].send(head + bytes(59_900))
    gateway.clock.advance(1)
    idle = gateway.connect()
    honest = ask(1)
    for at in range(0, len(honest), 10):
        door.send(honest[at : at + 10])
        idle.send(head + bytes(90)) if at == 10 else None
    assert [holder.transport.is_open for holder in holders] == [False, True]
    assert door.transport.is_open
    assert idle.transport.is_open
    assert len(held.contexts) == 1
    assert gateway.shared.held.requests == 59_904 + 94
    assert gateway.shared.refusals.counts == {"queued-bytes": 1}


def test_frames_that_wait_for_the_server_are_held_against_nobody() -> None:
    held, door = held_door(queued_max_request_bytes=10_000, gateway_pipelined_requests_max=2)
    door.send(b"".join(ask(number) for number in range(300)))
    assert len(held.contexts) == 2
    door.gateway.clock.advance(60)
    holder = door.gateway.connect()
    holder.send(struct.pack(">i", 9_000) + bytes(7_000))
    assert door.transport.is_open
    assert not holder.transport.is_open


def test_requests_that_are_being_decoded_are_in_memory_too() -> None:
    """Trigger: long requests arrive faster than they are decoded, one slice after another.

    Decoded elements take more memory than their bytes.
    """
    commit = frame(COMMIT, 9, 1, make_commit(9, 1, 10 * DECODED_AT_ONCE))
    most = 3 * (len(commit) + 10 * SLICE_BYTES)
    gateway = Gateway(with_settings(queued_max_request_bytes=most))
    doors = [gateway.connect() for _ in range(7)]
    for door in doors:
        door.send(commit)
    assert all(door.transport.is_open for door in doors)
    assert gateway.shared.held.requests >= 7 * len(commit)
    doors[0].lose()
    gateway.clock.advance(1)
    assert sum(door.transport.is_open for door in doors) == 3
    assert sum(len(door.frames()) for door in doors) == 3
    assert gateway.shared.held.requests == 0


def test_stranger_may_send_less_than_one_that_has_spoken_kafka() -> None:
    held, door = held_door(
        gateway_unauthenticated_request_max_bytes=1_000, socket_request_max_bytes=5_000
    )
    stranger = door.gateway.connect()
    stranger.send(struct.pack(">i", 1_001))
    assert not stranger.transport.is_open
    door.send(ask(1))
    held.answer(0)
    door.send(struct.pack(">i", 5_000))
    assert door.transport.is_open
    door.send(bytes(5_000))
    assert not door.transport.is_open


def test_connections_are_bounded() -> None:
    gateway = Gateway(with_settings(max_connections=2))
    doors = [gateway.connect() for _ in range(3)]
    assert [door.transport.is_open for door in doors] == [True, True, False]
    doors[0].lose()
    assert gateway.connect().transport.is_open


def test_idle_connections_make_room_and_those_that_never_spoke_first() -> None:
    held = Held()
    gateway = Gateway(with_settings(max_connections=4), apis=(held.api, API_VERSIONS))
    spoke, silent, waiting, half = (gateway.connect() for _ in range(4))
    spoke.send(ask(1))
    held.answer(0)
    waiting.send(ask(1))
    half.send(ask(1)[:10])
    assert not gateway.connect().transport.is_open, "all of them are new"
    gateway.clock.advance(6)
    newcomers = [gateway.connect()]
    assert newcomers[0].transport.is_open
    assert not silent.transport.is_open
    assert spoke.transport.is_open
    newcomers[0].send(frame(18, 0, 1, make_request(18, 0)))
    assert not gateway.connect().transport.is_open
    gateway.clock.advance(60)
    newcomers[0].send(frame(18, 0, 2, make_request(18, 0)))
    assert gateway.connect().transport.is_open
    assert not spoke.transport.is_open
    assert all(door.transport.is_open for door in (waiting, half, newcomers[0]))


def test_bug_in_a_handler_is_an_error_and_the_connection_lives(
    caplog: pytest.LogCaptureFixture,
) -> None:
    held = Held()

    def broken(context: RequestContext, request: Any) -> None:
        raise ZeroDivisionError("secret detail")

    api = Api(LIST_GROUPS, "Broken", range(6), broken, held.failed)
    door = Gateway(apis=(api, API_VERSIONS)).connect()
    door.send(ask(1))
    [(correlation_id, answer)] = door.answers(LIST_GROUPS, 4)
    assert (correlation_id, answer.error_code) == (1, ErrorCode.UNKNOWN_SERVER_ERROR)
    assert b"secret" not in door.transport.written
    assert "secret detail" in caplog.text
    door.send(frame(18, 0, 2, make_request(18, 0)))
    assert correlations(door) == [2]


def test_bug_without_an_error_form_closes_the_connection() -> None:
    def broken(context: RequestContext, request: Any) -> None:
        raise ZeroDivisionError

    door = Gateway(apis=(Api(LIST_GROUPS, "Broken", range(6), broken),)).connect()
    door.send(ask(1))
    assert not door.transport.is_open


def test_answer_that_cannot_be_written_is_a_bug_of_its_api() -> None:
    held, door = held_door()
    door.send(ask(1))
    held.contexts[0].reply(wire.ListGroupsResponse(throttle_time=0, error_code=0, groups=None))
    [(_, answer)] = door.answers(LIST_GROUPS, 4)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_bug_in_a_callback_never_reaches_the_coordinator() -> None:
    held = Held()

    def handle(context: RequestContext, request: Any) -> None:
        command: Any = None
        context.submit(command, lambda answer: 1 / 0)  # type: ignore[arg-type]

    api = Api(LIST_GROUPS, "Broken", range(6), handle, held.failed)
    gateway = Gateway(apis=(api,))
    gateway.coordinator.held = []
    door = gateway.connect()
    door.send(ask(1))
    gateway.coordinator.held.pop()("anything")
    [(_, answer)] = door.answers(LIST_GROUPS, 4)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_abandoned_requests_hear_of_it_once_and_late_answers_go_nowhere() -> None:
    held, door = held_door()
    door.send(ask(1) + ask(2))
    abandoned: list[int] = []
    for number, context in enumerate(held.contexts):
        context.on_abandoned(lambda number=number: abandoned.append(number))  # type: ignore[misc]
    held.answer(1)
    door.lose()
    assert abandoned == [0]
    assert held.contexts[0].closed
    held.answer(0)
    assert door.transport.written == b""


def test_drain_has_what_waits_answered_so_that_what_came_after_it_is() -> None:
    held, door = held_door()
    door.send(ask(1) + ask(2))
    held.contexts[0].on_drain(lambda: held.answer(0))
    held.answer(1)
    assert not door.connection.is_idle, "the second answer waits for the first"
    door.connection.drain()
    assert correlations(door) == [1, 2]
    assert door.connection.is_idle


def test_drain_leaves_requests_that_had_to_wait_unserved() -> None:
    """Otherwise a client that sends as fast as it is answered would be served for ever."""
    held, door = held_door(gateway_pipelined_requests_max=2)
    door.send(ask(0) + ask(1) + ask(2))
    for context in held.contexts:
        context.on_drain(partial(context.reply_failed, ErrorCode.NOT_COORDINATOR, ""))
    door.connection.drain()
    door.gateway.clock.advance(0.001)
    assert len(held.contexts) == 2
    answers = door.answers(LIST_GROUPS, 4)
    assert [(number, answer.error_code) for number, answer in answers] == [(0, 16), (1, 16)]
    assert door.connection.is_idle


def test_second_answer_to_one_request_is_dropped() -> None:
    held, door = held_door()
    door.send(ask(1))
    held.answer(0)
    held.answer(0)
    assert correlations(door) == [1]


def test_client_id_may_change_between_requests() -> None:
    held, door = held_door()
    for client_id in ("a", "b", "a", "", "b"):
        door.send(frame(LIST_GROUPS, 4, 1, make_request(LIST_GROUPS, 4), client_id))
        door.send(frame(LIST_GROUPS, 2, 1, make_request(LIST_GROUPS, 2), client_id))
    clients = [context.caller.client_id for context in held.contexts]
    assert clients == ["a", "a", "b", "b", "a", "a", "", "", "b", "b"]
    assert {context.caller.client_host for context in held.contexts} == {"/127.0.0.1"}


def test_null_client_id_and_header_tags_are_understood() -> None:
    held, door = held_door()
    body = make_request(LIST_GROUPS, 4)
    from gateway.codec.encoding import encode

    head = struct.pack(">hhih", LIST_GROUPS, 4, 9, -1) + b"\x01\x05\x02ab"
    payload = head + encode(type(body), body)
    door.send(struct.pack(">i", len(payload)) + payload)
    assert held.contexts[0].caller.client_id == ""
    assert held.contexts[0].correlation_id == 9


def test_advertised_address_is_the_one_the_client_connected_to_unless_set() -> None:
    held, door = held_door()
    door.send(ask(1))
    assert held.contexts[0].advertised == ("127.0.0.1", 9_092)
    endpoint = replace(PLAIN.endpoint, advertised_host="kafka.example", advertised_port=1)
    held = Held()
    gateway = Gateway(with_settings(), apis=(held.api, API_VERSIONS))
    door = gateway.connect(WireListener(endpoint))
    door.send(ask(1))
    assert held.contexts[0].advertised == ("kafka.example", 1)


@pytest.mark.parametrize("is_metered", [False, True])
def test_a_connection_takes_little_memory(is_metered: bool) -> None:
    gateway = Gateway(quotas=ClientQuotas())
    connection = gateway.connect().connection
    if is_metered:
        meter(connection, gateway.shared.quotas)
    assert len(vars(connection)) <= SHARED_MAX
