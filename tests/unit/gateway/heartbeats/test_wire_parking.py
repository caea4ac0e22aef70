"""Parked and repeated heartbeats, in virtual time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.heartbeats.heartbeat_wire import encode_heartbeat_response
from gateway.heartbeats.parking import TICK_MS, Parked, ParkedCachedHeartbeat, ParkedHeartbeat
from model.access.acls import Operation, ResourceType
from model.commands.consumer import ConsumerGroupHeartbeat
from model.errors import ErrorCode, UnknownMemberId
from model.ids import TopicId
from model.log.records import TopicPartitions
from tests.support.authorizers import Rights
from tests.support.gateway.fake_coordinator import answer_of, quiet
from tests.support.gateway.wire_door import Door, Gateway
from tests.support.gateway.wire_rig import with_settings
from tests.support.wire.fields import beat, join
from tests.support.wire.frames import frame, make_request

HEARTBEAT = 68
REST_MS = 550
PARK_S = 0.5
OWNED = (TopicPartitions(TopicId(b"t" * 16), (0, 1)),)


def bring_to_rest(door: Door) -> None:
    """Send heartbeats without a change until the member gets the resting interval."""
    for number in range(20):
        door.request(HEARTBEAT, 1, number, **beat("g", "m", 5))
        door.gateway.clock.advance(3)
        if door.answers(HEARTBEAT, 1)[0][1].heartbeat_interval == REST_MS:
            return
    raise AssertionError("never at rest")


@pytest.fixture
def door() -> Door:
    """A connection with a resting member, whose next heartbeat is parked for 500 ms."""
    door = Gateway().connect()
    bring_to_rest(door)
    return door


def submitted(door: Door) -> int:
    return len(door.gateway.coordinator.commands)


def test_quiet_heartbeat_is_answered_when_the_park_is_over(door: Door) -> None:
    before = submitted(door)
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", 5))
    door.gateway.clock.advance(PARK_S - TICK_MS / 1_000 - 0.001)
    assert door.frames() == []
    door.gateway.clock.advance(TICK_MS / 1_000 + 0.001)
    [(correlation_id, answer)] = door.answers(HEARTBEAT, 1)
    assert correlation_id == 77
    assert (answer.error_code, answer.member_epoch, answer.heartbeat_interval) == (0, 5, REST_MS)
    assert submitted(door) == before, "the kept answer needs no coordinator"
    assert all(watch.is_cancelled for watch in door.gateway.coordinator.watches)


def test_news_ends_the_park_with_the_news(door: Door) -> None:
    coordinator = door.gateway.coordinator
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", 5))
    door.gateway.clock.advance(0.1)
    coordinator.answer = lambda command: answer_of(
        command, member_epoch=6, has_changes=True, assignment=OWNED
    )
    coordinator.send_change()
    [(correlation_id, answer)] = door.answers(HEARTBEAT, 1)
    assert (correlation_id, answer.member_epoch) == (77, 6)
    assert answer.assignment.topic_partitions[0].partitions == (0, 1)
    assert answer.heartbeat_interval == 100, "it is to be in reach again soon"
    assert coordinator.commands[-1].member_epoch == 5, "the same heartbeat was submitted again"
    door.gateway.clock.advance(5)
    assert door.frames() == [], "one answer only"


def test_news_that_is_there_already_is_answered_at_once(door: Door) -> None:
    coordinator = door.gateway.coordinator
    coordinator.has_pending_change = True
    coordinator.answer = lambda command: answer_of(command, member_epoch=6, has_changes=True)
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", 5))
    assert [answer.member_epoch for _, answer in door.answers(HEARTBEAT, 1)] == [6]


def test_park_that_ends_with_a_dead_ticket_asks_the_coordinator(door: Door) -> None:
    before = submitted(door)
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", 5))
    for ticket in door.gateway.coordinator.tickets:
        ticket.is_alive = False
    door.gateway.coordinator.answer = lambda command: UnknownMemberId("gone")
    door.gateway.clock.advance(PARK_S)
    [(_, answer)] = door.answers(HEARTBEAT, 1)
    assert (answer.error_code, answer.error_message) == (ErrorCode.UNKNOWN_MEMBER_ID, "gone")
    assert submitted(door) == before + 1


def test_heartbeat_whose_park_is_over_is_owed_its_answer(door: Door) -> None:
    coordinator = door.gateway.coordinator
    coordinator.answer = lambda command: answer_of(command, assignment=OWNED)
    door.send(frame(HEARTBEAT, 1, 77, full_body(join("g", "m", ("t",)) | {"member_epoch": 5})))
    for ticket in coordinator.tickets:
        ticket.is_alive = False
    coordinator.held = []
    door.connection.drain()
    assert len(coordinator.held) == 1
    assert not door.connection.is_idle


def test_another_request_ends_the_park_and_is_answered_after_it(door: Door) -> None:
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", 5))
    door.request(18, 0, 78)
    assert [int.from_bytes(data[:4], "big") for data in door.frames()] == [77, 78]


def test_requests_in_one_read_are_not_held_up_by_a_heartbeat_among_them(
    door: Door,
) -> None:
    heartbeat = frame(HEARTBEAT, 1, 77, make_request(HEARTBEAT, 1, **beat("g", "m", 5)))
    versions = frame(18, 0, 78, make_request(18, 0))
    door.send(versions + heartbeat + versions + heartbeat)
    assert [int.from_bytes(data[:4], "big") for data in door.frames()] == [78, 77, 78]
    door.gateway.clock.advance(PARK_S)
    assert [int.from_bytes(data[:4], "big") for data in door.frames()] == [77]


def test_lost_connection_drops_watch_and_answer(door: Door) -> None:
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", 5))
    door.lose()
    assert all(watch.is_cancelled for watch in door.gateway.coordinator.watches)
    before = submitted(door)
    door.gateway.clock.advance(5)
    assert submitted(door) == before
    assert door.gateway.heartbeats.members == 0


def test_first_heartbeat_of_a_connection_is_not_parked() -> None:
    """The client's last interval is unknown here, and so is when it gives a response up."""
    door = Gateway().connect()
    door.request(HEARTBEAT, 1, 1, **beat("g", "m", 5))
    assert len(door.frames()) == 1


@pytest.mark.parametrize("park_ms", [0, 500])
def test_first_heartbeat_of_a_connection_asks_for_all(park_ms: int) -> None:
    """Its client may have missed the last response elsewhere. Without parking, as in Kafka."""
    door = Gateway(with_settings(gateway_park_ms=park_ms)).connect()
    for number in range(2):
        fields = beat("g", "m", 5) | {"rebalance_timeout": 7_000 + number}
        door.request(HEARTBEAT, 1, number, **fields)
    asked = [command.wants_assignment for command in door.gateway.coordinator.commands]
    assert asked == [park_ms > 0, False]


@pytest.mark.parametrize(
    "changes",
    [{"has_changes": True}, {"parkable": False}, {"assignment": OWNED}],
    ids=["changes", "unrevoked", "assignment the client lacks"],
)
def test_answer_that_matters_is_not_parked(door: Door, changes: dict[str, Any]) -> None:
    door.gateway.coordinator.answer = lambda command: answer_of(command, **changes)
    fields = beat("g", "m", 5) | {"rebalance_timeout": 7_000}
    door.request(HEARTBEAT, 1, 77, **fields)
    assert len(door.frames()) == 1


def test_join_is_not_parked(door: Door) -> None:
    door.request(HEARTBEAT, 1, 77, **join("g", "m", ("t",)))
    assert len(door.frames()) == 1


def test_full_request_that_repeats_what_is_known_is_parked_and_answered_in_full(
    door: Door,
) -> None:
    coordinator = door.gateway.coordinator
    coordinator.answer = lambda command: answer_of(command, assignment=OWNED)
    fields = join("g", "m", ("t",)) | {"member_epoch": 5}
    body = full_body(fields)
    for number in (77, 78):
        door.send(frame(HEARTBEAT, 1, number, body))
        assert door.frames() == []
        door.gateway.clock.advance(PARK_S)
        [(correlation_id, answer)] = door.answers(HEARTBEAT, 1)
        assert correlation_id == number
        assert answer.assignment.topic_partitions[0].topic_id == b"t" * 16


def full_body(fields: dict[str, Any]) -> bytes:
    """The body of a heartbeat that owns ``OWNED``."""
    from gateway.codec.encoding import encode
    from gateway.codec.kio_schema import request_schema

    wire = request_schema(HEARTBEAT)
    owned = [wire.TopicPartitions(topic_id=b"t" * 16, partitions=(0, 1))]
    request = make_request(HEARTBEAT, 1, **(fields | {"topic_partitions": owned}))
    return encode(type(request), request)


def test_load_generator_is_answered_at_once(door: Door) -> None:
    """More heartbeats within one interval than any client sends."""
    answered = []
    for number in range(6):
        door.request(HEARTBEAT, 1, number, **beat("g", "m", 5))
        answered.append(len(door.frames()))
    # Each of the first three ends the park of the one before it; from the fourth on none waits.
    assert answered == [0, 1, 1, 2, 1, 1]


def test_several_members_on_one_connection_are_not_parked(door: Door) -> None:
    door.request(HEARTBEAT, 1, 1, **beat("g", "other", 5))
    door.frames()
    for number in range(10):
        for member in ("m", "other"):
            door.request(HEARTBEAT, 1, number, **beat("g", member, 5))
            [(_, answer)] = door.answers(HEARTBEAT, 1)
        door.gateway.clock.advance(1)
    assert answer.heartbeat_interval > REST_MS


def test_park_off_is_kafkas_interval_at_once() -> None:
    door = Gateway(with_settings(gateway_park_ms=0)).connect()
    for number in range(3):
        door.request(HEARTBEAT, 1, number, **beat("g", "m", 5))
        [(_, answer)] = door.answers(HEARTBEAT, 1)
        assert answer.heartbeat_interval == 5_000
        door.gateway.clock.advance(5)
    assert submitted(door) == 1, "the kept answer is used all the same"


def test_server_that_drains_parks_no_more(door: Door) -> None:
    door.gateway.heartbeats.stop_parking()
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", 5))
    assert len(door.frames()) == 1


def test_park_is_over_before_the_client_gives_up() -> None:
    """librdkafka gives a heartbeat up after the interval that it was told last."""
    door = Gateway().connect()
    interval_ms = 0
    for number in range(12):
        sent = door.gateway.clock.time()
        door.request(HEARTBEAT, 1, number, **beat("g", "m", 5))
        found = door.answers(HEARTBEAT, 1)
        while not found:
            door.gateway.clock.advance(0.001)
            found = door.answers(HEARTBEAT, 1)
        took_ms = (door.gateway.clock.time() - sent) * 1_000
        assert took_ms <= max(0, interval_ms - 50) + 1
        interval_ms = found[0][1].heartbeat_interval
        door.gateway.clock.advance(max(0.0, interval_ms - took_ms) / 1_000)
    assert interval_ms == REST_MS


def test_waiting_member_comes_back_sooner_than_a_settled_one() -> None:
    told = {}
    for settled in (True, False):
        door = Gateway().connect()
        door.gateway.coordinator.answer = lambda command, settled=settled: answer_of(
            command, member_epoch=1, has_changes=True, settled=settled
        )
        door.request(HEARTBEAT, 1, 1, **join("g", "m", ("t",)))
        told[settled] = door.answers(HEARTBEAT, 1)[0][1].heartbeat_interval
    assert told == {True: 100, False: 50}


def test_slow_answers_make_the_interval_longer() -> None:
    """A disk that takes 200 ms must not make every heartbeat time out at the client."""
    door = Gateway().connect()
    coordinator = door.gateway.coordinator
    coordinator.held = []
    door.request(HEARTBEAT, 1, 1, **join("g", "m", ("t",)))
    door.gateway.clock.advance(0.2)
    reply = coordinator.held.pop()
    reply(answer_of(coordinator.commands[-1], member_epoch=1, has_changes=True, settled=False))
    assert door.answers(HEARTBEAT, 1)[0][1].heartbeat_interval == pytest.approx(400, abs=1)


def test_heartbeat_with_a_request_behind_it_is_not_parked(door: Door) -> None:
    """Its answer comes from the coordinator when the next request is there already."""
    coordinator = door.gateway.coordinator
    coordinator.held = []
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", 5, topic_partitions=()))
    door.request(18, 0, 78)
    coordinator.held.pop()(answer_of(coordinator.commands[-1]))
    assert [int.from_bytes(data[:4], "big") for data in door.frames()] == [77, 78]


def test_repeated_heartbeat_waits_for_the_answers_before_it(door: Door) -> None:
    coordinator = door.gateway.coordinator
    coordinator.held = []
    door.request(HEARTBEAT, 1, 76, **beat("g", "m", 5, topic_partitions=()))
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", 5))
    assert door.frames() == []
    coordinator.held.pop()(answer_of(coordinator.commands[-1]))
    assert [int.from_bytes(data[:4], "big") for data in door.frames()] == [76, 77]


def test_heartbeats_that_bring_news_are_not_taken_for_a_load_generators(
    door: Door,
) -> None:
    """A rebalance makes a client send many in a short time; the next one is parked."""
    coordinator = door.gateway.coordinator
    for number in range(4):
        door.request(HEARTBEAT, 1, number, **beat("g", "m", 5))
    coordinator.answer = lambda command: answer_of(command, member_epoch=6, has_changes=True)
    door.request(HEARTBEAT, 1, 5, **beat("g", "m", 5, topic_partitions=()))
    coordinator.answer = answer_of
    door.frames()
    door.request(HEARTBEAT, 1, 6, **beat("g", "m", 6))
    assert door.frames() == []


# --------------------------------------------------------------------------- the kept answer


def test_kept_answer_is_byte_for_byte_the_coordinators(door: Door) -> None:
    """Except the interval and the correlation id, which are set for each response."""
    command = door.gateway.coordinator.commands[-1]
    assert isinstance(command, ConsumerGroupHeartbeat)
    expected, _ = encode_heartbeat_response(answer_of(command), REST_MS)
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", 5))
    door.gateway.clock.advance(PARK_S)
    assert door.frames() == [b"\x00\x00\x00\x4d\x00" + expected]


def test_repeated_heartbeat_touches_the_member(door: Door) -> None:
    ticket = door.gateway.coordinator.tickets[-1]
    touched = len(ticket.touched)
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", 5))
    assert ticket.touched[touched:] == [int(door.gateway.clock.time() * 1_000)]


@pytest.mark.parametrize(
    "fields",
    [
        beat("g", "m", 6),
        beat("g", "n", 5),
        beat("h", "m", 5),
        beat("g", "m", 5, topic_partitions=()),
        beat("g", "m", 5, rack_id="r"),
    ],
)
def test_any_other_heartbeat_goes_to_the_coordinator(door: Door, fields: dict[str, Any]) -> None:
    before = submitted(door)
    door.request(HEARTBEAT, 1, 77, **fields)
    assert submitted(door) == before + 1


def test_other_version_or_client_id_goes_to_the_coordinator(door: Door) -> None:
    before = submitted(door)
    door.send(
        frame(HEARTBEAT, 1, 77, make_request(HEARTBEAT, 1, **beat("g", "m", 5)), client_id="d")
    )
    request = make_request(HEARTBEAT, 0, **beat("g", "m", 5))
    door.send(frame(HEARTBEAT, 0, 78, request))
    assert submitted(door) == before + 2


def test_same_bytes_in_another_version_are_not_taken_for_the_same_heartbeat(
    door: Door,
) -> None:
    """In version 0 the bytes are a heartbeat with a byte too many, which must be submitted."""
    before = submitted(door)
    whole = bytearray(frame(HEARTBEAT, 1, 77, make_request(HEARTBEAT, 1, **beat("g", "m", 5))))
    whole[7] = 0
    door.send(bytes(whole))
    assert submitted(door) == before + 1


def test_other_api_with_the_same_bytes_is_not_taken_for_a_heartbeat(door: Door) -> None:
    whole = bytearray(frame(HEARTBEAT, 1, 77, make_request(HEARTBEAT, 1, **beat("g", "m", 5))))
    whole[4:6] = (324).to_bytes(2, "big")  # 68 in its low byte
    door.send(bytes(whole))
    assert not door.transport.is_open
    assert door.gateway.shared.refusals.counts == {"unsupported": 1}


def test_answer_is_kept_only_if_nothing_happened_meanwhile() -> None:
    """A change between a heartbeat and its answer outdates the answer at once."""
    door = Gateway().connect()
    coordinator = door.gateway.coordinator
    coordinator.held = []
    door.request(HEARTBEAT, 1, 1, **beat("g", "m", 5))
    coordinator.tickets[-1].is_alive = False
    coordinator.held.pop()(answer_of(coordinator.commands[-1]))
    assert door.connection.heartbeats.cached == {}


def test_revoked_right_ends_the_use_of_the_kept_answer() -> None:
    right = (Operation.READ, ResourceType.GROUP, "g")
    rights = Rights()
    door = Gateway(authorizer=rights).connect()
    bring_to_rest(door)
    rights.denied.add(right)
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", 5))
    [(_, answer)] = door.answers(HEARTBEAT, 1)
    assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert {asked[2:] for asked in rights.asked} == {right}


def test_a_right_that_is_revoked_while_a_heartbeat_is_answered_is_not_taken_for_granted() -> None:
    """Trigger: the kept answer had the version of the ACLs of its end, not of its request."""
    rights = Rights()
    gateway = Gateway(with_settings(gateway_park_ms=0), rights)
    coordinator, door = gateway.coordinator, gateway.connect()
    coordinator.held = []
    door.request(HEARTBEAT, 1, 1, **beat("g", "m", 5))
    rights.denied.add((Operation.READ, ResourceType.GROUP, "g"))
    coordinator.held[0](quiet(coordinator.commands[0]))
    coordinator.held = None
    door.request(HEARTBEAT, 1, 2, **beat("g", "m", 5))
    codes = [answer.error_code for _, answer in door.answers(HEARTBEAT, 1)]
    assert codes == [ErrorCode.NONE, ErrorCode.GROUP_AUTHORIZATION_FAILED]


def test_no_assignment_passes_once_the_right_is_revoked() -> None:
    rights = Rights()
    gateway = Gateway(with_settings(gateway_park_ms=0), rights)
    coordinator, door = gateway.coordinator, gateway.connect()
    coordinator.held = []
    door.request(HEARTBEAT, 1, 1, **join("g", "m", ("t",)))
    rights.denied.add((Operation.READ, ResourceType.GROUP, "g"))
    owned = (TopicPartitions(TopicId(b"t" * 16), (0,)),)
    coordinator.held[0](answer_of(coordinator.commands[0], assignment=owned, has_changes=True))
    [(_, answer)] = door.answers(HEARTBEAT, 1)
    assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert answer.assignment is None


def test_leave_forgets_the_member(door: Door) -> None:
    from model.responses.consumer import ConsumerGroupLeaveResponse

    door.gateway.coordinator.answer = lambda command: ConsumerGroupLeaveResponse("m", -1)
    door.request(HEARTBEAT, 1, 77, **beat("g", "m", -1))
    [(_, answer)] = door.answers(HEARTBEAT, 1)
    assert (answer.member_epoch, answer.heartbeat_interval) == (-1, 0)
    assert door.gateway.heartbeats.members == 0
    assert door.connection.heartbeats.cached == {}


def test_members_remembered_of_one_connection_are_bounded() -> None:
    gateway = Gateway(replace(with_settings(), gateway_steady_cache_entries=10))
    door = gateway.connect()
    for number in range(35):
        door.request(HEARTBEAT, 1, number, **beat("g", f"m{number}", 5))
    assert gateway.heartbeats.members == len(door.connection.heartbeats.members) <= 10
    assert len(door.connection.heartbeats.cached) <= 10
    door.lose()
    assert gateway.heartbeats.members == 0


def test_many_parks_end_in_slices() -> None:
    gateway = Gateway(with_settings(gateway_wake_slice=3))
    doors = [gateway.connect() for _ in range(8)]
    for number, door in enumerate(doors):
        for _ in range(9):
            door.request(HEARTBEAT, 1, 1, **beat("g", f"m{number}", 5))
            gateway.clock.advance(0.6)
            door.frames()
    for number, door in enumerate(doors):
        door.request(HEARTBEAT, 1, 1, **beat("g", f"m{number}", 5))
    assert sum(len(door.frames()) for door in doors) == 0
    gateway.clock.advance(PARK_S)
    assert sum(len(door.frames()) for door in doors) == 8


@pytest.mark.parametrize("way", ["_answer_as_found", "_ask_again"])
@pytest.mark.parametrize("kind", [ParkedHeartbeat, ParkedCachedHeartbeat])
def test_a_park_that_cannot_end_keeps_no_other_from_it(
    monkeypatch: pytest.MonkeyPatch, kind: type[Parked], way: str
) -> None:
    """Parks of a tick end together; an error in one fails or closes its own connection only."""
    gateway = Gateway()
    doors = [gateway.connect() for _ in range(3)]
    for number, door in enumerate(doors):
        for _ in range(9):
            door.request(HEARTBEAT, 1, 1, **beat("g", f"m{number}", 5))
            gateway.clock.advance(0.6)
            door.frames()
    for number, door in enumerate(doors):
        change = {"rack_id": "r"} if kind is ParkedHeartbeat else {}
        door.request(HEARTBEAT, 1, 77, **(beat("g", f"m{number}", 5) | change))
        assert type(door.connection.heartbeats.parked) is kind
    failing = doors[0].connection.heartbeats.parked
    before = getattr(kind, way)

    def fail(parked: Parked) -> None:
        if parked is failing:
            raise RuntimeError("a bug")
        before(parked)

    monkeypatch.setattr(kind, way, fail)
    if way == "_ask_again":
        gateway.coordinator.send_change()
    gateway.clock.advance(PARK_S)
    if kind is ParkedHeartbeat:
        [(_, refused)] = doors[0].answers(HEARTBEAT, 1)
        assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert doors[0].transport.is_open == (kind is ParkedHeartbeat)
    for door in doors[1:]:
        [(correlation_id, answer)] = door.answers(HEARTBEAT, 1)
        assert (correlation_id, answer.error_code) == (77, 0)
