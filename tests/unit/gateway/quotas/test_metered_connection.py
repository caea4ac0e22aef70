"""Connections with quotas: what counts, what the answer says, and how long nothing is read."""

from __future__ import annotations

import gc
from itertools import pairwise
from typing import Any

import pytest

from gateway.connection.connection import Connection
from gateway.quotas.metered_connection import MeteredConnection, meter, stop_metering
from gateway.quotas.metering import SLICE, look_at_quotas
from gateway.settings import GatewaySettings
from model.access.quotas import DEFAULT_NAME, QuotaEntity
from model.caller import ANONYMOUS as ANONYMOUS_USER
from model.caller import Caller
from model.errors import ErrorCode
from security.quotas import client_quotas
from security.quotas.client_quotas import ClientQuotas
from tests.support.gateway.fake_coordinator import answer_of, quiet
from tests.support.gateway.wire_door import Door, Gateway
from tests.support.wire.fields import beat, join
from tests.support.wire.frames import frame, make_request

HEARTBEAT, VERSIONS, LIST = 68, 18, 16
REST_MS = 550
ANONYMOUS = QuotaEntity("ANONYMOUS")


def make_gateway(settings: GatewaySettings | None = None, **limits: float) -> Gateway:
    """A gateway whose anonymous user has these quotas."""
    quotas = ClientQuotas()
    if limits:
        quotas.index.put(ANONYMOUS, limits)
    return Gateway(settings, quotas=quotas)


def connect(gateway: Gateway, host: str = "127.0.0.1") -> Door:
    door = gateway.connect(host=host)
    meter(door.connection, gateway.shared.quotas)
    return door


def ask(door: Door, number: int, epoch: int = 5, member: str = "m") -> None:
    door.request(HEARTBEAT, 1, number, **beat("g", member, epoch))


def throttle_of(door: Door) -> list[int]:
    """The throttle times of the heartbeats answered since the last call."""
    return [answer.throttle_time for _, answer in door.answers(HEARTBEAT, 1)]


UNPARKED = GatewaySettings(gateway_park_ms=0)


def test_over_the_quota_the_answer_comes_at_once_and_nothing_is_read_for_that_time() -> None:
    gateway = make_gateway(UNPARKED, request_rate=2.0)
    door = connect(gateway)
    for number in range(20):
        ask(door, number)
    assert throttle_of(door) == [0] * 20
    ask(door, 20)
    assert throttle_of(door) == [500]
    assert not door.transport.is_reading
    gateway.clock.advance(0.45)
    assert not door.transport.is_reading
    gateway.clock.advance(0.1)
    assert door.transport.is_reading
    assert gateway.shared.quotas.throttled_s == {"kafka": pytest.approx(0.5)}


def test_what_was_sent_meanwhile_is_served_when_the_time_is_over() -> None:
    gateway = make_gateway(UNPARKED, request_rate=2.0)
    door = connect(gateway)
    body = make_request(HEARTBEAT, 1, **beat("g", "m", 5))
    door.send(b"".join(frame(HEARTBEAT, 1, number, body) for number in range(30)))
    answered = throttle_of(door)
    assert answered[:20] == [0] * 20
    assert answered[20:] == [500], "pipelined requests wait"
    ask(door, 30)
    assert door.frames() == []
    gateway.clock.advance(30)
    found = door.answers(HEARTBEAT, 1)
    assert [number for number, _ in found] == list(range(21, 31))
    assert door.transport.is_reading


def test_repeats_count_like_the_first_and_say_so_too() -> None:
    gateway = make_gateway(UNPARKED, request_rate=5.0)
    door = connect(gateway)
    for number in range(50):
        ask(door, number)
    assert door.connection.repeats, "they are answered from memory"
    before = len(gateway.coordinator.commands)
    ask(door, 50)
    assert throttle_of(door)[-1] == 200
    assert len(gateway.coordinator.commands) == before + 1, "decoded, so that it can say so"


def test_repeats_of_a_client_within_its_quota_are_not_decoded() -> None:
    gateway = make_gateway(UNPARKED, request_rate=1_000.0)
    door = connect(gateway)
    for number in range(50):
        ask(door, number)
    before = len(gateway.coordinator.commands)
    for number in range(50, 100):
        ask(door, number)
    assert len(gateway.coordinator.commands) == before
    assert throttle_of(door) == [0] * 100


def test_no_client_is_muted_for_longer_than_a_window() -> None:
    gateway = make_gateway(UNPARKED, request_rate=0.01)
    door = connect(gateway)
    for number in range(5):
        ask(door, number)
    assert throttle_of(door) == [1_000]
    gateway.clock.advance(1.01)
    assert throttle_of(door) == [1_000], "the next one"


def test_the_time_of_the_loop_counts_and_this_answer_says_so() -> None:
    gateway = make_gateway(UNPARKED, request_percentage=10.0)
    door = connect(gateway)

    def take_long(command: Any) -> Any:
        gateway.clock.pass_by(0.3)
        return quiet(command)

    gateway.coordinator.answer = take_long
    found = []
    for number in range(4):
        ask(door, number, epoch=number + 1)
        found += throttle_of(door)
    assert found[:3] == [0] * 3
    assert found[3] > 0
    assert not door.transport.is_reading


def test_a_held_heartbeat_counts_once_and_not_for_the_time_that_it_is_held() -> None:
    gateway = make_gateway(request_percentage=1.0, request_rate=1_000.0)
    door = connect(gateway)
    for number in range(20):
        ask(door, number)
        gateway.clock.advance(3)
        if door.answers(HEARTBEAT, 1)[0][1].heartbeat_interval == REST_MS:
            break
    ask(door, 77)
    gateway.clock.advance(0.3)
    assert door.frames() == [], "it is held"
    assert door.transport.is_reading
    gateway.clock.advance(0.3)
    assert throttle_of(door) == [0]
    assert gateway.shared.quotas.throttled_s == {}


def test_a_join_counts_when_it_arrives_and_its_late_answer_says_what_is_left() -> None:
    gateway = make_gateway(UNPARKED, join_rate=0.1)
    door = connect(gateway)
    held: list[Any] = []
    gateway.coordinator.held = held
    door.request(HEARTBEAT, 1, 1, **join("g", "m1", ("t",)))
    assert door.transport.is_reading
    door.request(HEARTBEAT, 1, 2, **join("g", "m2", ("t",)))
    assert not door.transport.is_reading
    gateway.clock.advance(0.4)
    for reply, command in zip(held, gateway.coordinator.commands, strict=True):
        reply(answer_of(command, has_changes=True))
    assert throttle_of(door) == [600, 600]
    gateway.clock.advance(0.7)
    assert door.transport.is_reading


def test_heartbeats_of_a_member_are_not_joins() -> None:
    gateway = make_gateway(UNPARKED, join_rate=0.1)
    door = connect(gateway)
    for number in range(100):
        ask(door, number, epoch=number + 1)
    assert throttle_of(door) == [0] * 100


def test_all_connections_of_a_user_share_the_quota() -> None:
    gateway = make_gateway(UNPARKED, request_rate=1.0)
    doors = [connect(gateway) for _ in range(11)]
    for door in doors:
        ask(door, 1)
    assert [throttle_of(door) for door in doors] == [[0]] * 10 + [[1_000]]
    assert [door.transport.is_reading for door in doors] == [True] * 10 + [False]


def test_a_change_of_the_quota_holds_from_the_next_request() -> None:
    gateway = make_gateway(UNPARKED, request_rate=1.0)
    door = connect(gateway)
    for number in range(9):
        ask(door, number)
    gateway.shared.quotas.index.put(ANONYMOUS, {"request_rate": 0.5})
    ask(door, 9)
    assert throttle_of(door)[-1] == 1_000
    gateway.clock.advance(1.1)
    gateway.shared.quotas.index.discard(ANONYMOUS)
    for number in range(10, 60):
        ask(door, number)
    assert throttle_of(door) == [0] * 50


def test_plain_connections_become_metered_ones_and_plain_again() -> None:
    gateway = make_gateway(UNPARKED, request_rate=1.0)
    door = gateway.connect()
    for number in range(50):
        ask(door, number)
    assert throttle_of(door) == [0] * 50
    assert type(door.connection) is Connection
    meter(door.connection, gateway.shared.quotas)
    for number in range(50, 61):
        ask(door, number)
    assert throttle_of(door) == [0] * 10 + [1_000]
    ask(door, 61)
    stop_metering(door.connection)
    assert type(door.connection) is Connection
    gateway.clock.advance(0.01)
    assert throttle_of(door) == [0], "nobody is muted any more"
    assert door.transport.is_reading
    gateway.clock.advance(10)
    ask(door, 62)
    assert throttle_of(door) == [0]


def test_all_connections_are_metered_in_slices_while_there_are_quotas() -> None:
    """Bug: 20,000 connections were changed in one iteration, for 0.4 s."""
    gateway = make_gateway()
    doors = [gateway.connect() for _ in range(3 * SLICE)]

    def count() -> int:
        return sum(isinstance(door.connection, MeteredConnection) for door in doors)

    gateway.shared.quotas.index.put(ANONYMOUS, {"request_rate": 1.0})
    look_at_quotas(gateway.shared)
    doors.pop().lose()
    counts = [count()]
    while gateway.clock.turn():
        counts.append(count())
    assert counts[0] <= SLICE
    assert all(later - earlier <= SLICE for earlier, later in pairwise(counts))
    assert counts[-1] == len(doors)
    gateway.shared.quotas.index.discard(ANONYMOUS)
    look_at_quotas(gateway.shared)
    gateway.shared.quotas.index.put(ANONYMOUS, {"request_rate": 1.0})
    look_at_quotas(gateway.shared)
    while gateway.clock.turn():
        pass
    assert count() == len(doors)
    gateway.shared.quotas.index.discard(ANONYMOUS)
    look_at_quotas(gateway.shared)
    while gateway.clock.turn():
        pass
    assert count() == 0


def test_what_a_client_has_used_is_kept_when_it_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many others have come since: else it would connect again, and have used nothing."""
    monkeypatch.setattr(client_quotas, "USAGES_MAX", 10)
    gateway = make_gateway(UNPARKED)
    gateway.shared.quotas.index.put(QuotaEntity(DEFAULT_NAME, DEFAULT_NAME), {"request_rate": 1.0})
    door = connect(gateway)
    for number in range(10):
        ask(door, number)
    assert throttle_of(door) == [0] * 10
    for number in range(20):
        other = Caller(ANONYMOUS_USER, f"other-{number}", "/10.0.0.1")
        gateway.shared.quotas.find_meter(other, gateway.clock.time())
    door.lose()
    del door
    gc.collect()
    again = connect(gateway)
    ask(again, 10)
    assert throttle_of(again) == [1_000]


def test_the_first_bytes_of_a_request_do_not_count_as_one() -> None:
    gateway = make_gateway(UNPARKED, request_rate=1.0)
    door = connect(gateway)
    body = make_request(HEARTBEAT, 1, **beat("g", "m", 5))
    for number in range(10):
        data = frame(HEARTBEAT, 1, number, body)
        for cut in (20, 25, 30):
            door.send(data[cut - 20 if cut == 20 else cut - 5 : cut])
        door.send(data[30:])
    assert throttle_of(door) == [0] * 10


def test_who_has_gone_while_muted_leaves_nothing() -> None:
    gateway = make_gateway(UNPARKED, request_rate=0.01)
    door = connect(gateway)
    ask(door, 1)
    ask(door, 2)
    door.lose()
    gateway.clock.advance(5)
    assert gateway.shared.held.requests == 0
    assert not gateway.shared.connections


def test_a_user_may_make_so_many_members_and_groups() -> None:
    gateway = make_gateway(UNPARKED, members_max=2, groups_max=1)
    door = connect(gateway)
    coordinator = gateway.coordinator
    for number, (group, member) in enumerate([("g", "m1"), ("g", "m2"), ("g", "m3"), ("h", "m1")]):
        door.request(HEARTBEAT, 1, number, **join(group, member, ("t",)))
        coordinator.members.add((group, member))
    codes = [answer.error_code for _, answer in door.answers(HEARTBEAT, 1)]
    assert codes == [0, 0, ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.POLICY_VIOLATION]
    assert {command.member_id for command in coordinator.commands} == {"m1", "m2"}
    ask(door, 9, member="m1")
    assert door.answers(HEARTBEAT, 1)[0][1].error_code == 0
    coordinator.members = {("g", "m1")}
    gateway.clock.advance(15)
    door.request(HEARTBEAT, 1, 10, **join("g", "m4", ("t",)))
    assert door.answers(HEARTBEAT, 1)[0][1].error_code == 0


def test_a_flood_of_client_ids_keeps_no_more_than_so_many_rates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("security.quotas.client_quotas.USAGES_MAX", 50)
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity(client_id=DEFAULT_NAME), {"request_rate": 100.0})
    gateway = Gateway(UNPARKED, quotas=quotas)
    door = connect(gateway)
    body = make_request(LIST, 3)
    for number in range(500):
        door.send(frame(VERSIONS, 0, number, make_request(VERSIONS, 0), f"client-{number}"))
    assert body is not None
    assert len(door.frames()) == 500
    assert len(quotas._kept) <= 50


def read_state(connection: Connection) -> dict[str, Any]:
    """All attributes, but for the node, which metering replaces."""
    slots = {name for each in type(connection).__mro__ for name in getattr(each, "__slots__", ())}
    found = {name: getattr(connection, name) for name in slots} | vars(connection)
    del found["_node"]
    return found


def test_the_class_of_a_connection_changes_and_its_state_stays() -> None:
    gateway = make_gateway(UNPARKED, request_rate=1_000.0)
    door = gateway.connect()
    ask(door, 1)
    connection: Connection = door.connection
    before = read_state(connection)
    meter(connection, gateway.shared.quotas)
    assert isinstance(connection, MeteredConnection)
    after = read_state(connection)
    assert {name: after[name] for name in before} == before
