"""Quotas of clients that authenticate by SASL: whose they are, and muting as sessions end."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.connection.sasl_connection import SaslConnection
from gateway.quotas.metered_connection import MeteredSaslConnection, meter, stop_metering
from gateway.settings import GatewaySettings
from model.access.quotas import DEFAULT_NAME, QuotaEntity
from security.quotas.client_quotas import ClientQuotas
from tests.support.security.sasl_door import (
    FAILED,
    HANDSHAKE,
    HEARTBEAT,
    NONE,
    VERSIONS,
    SaslDoor,
    SaslGateway,
    plain,
)
from tests.support.wire.fields import beat

UNPARKED = GatewaySettings(gateway_park_ms=0)
EVERYBODY, ALICE = QuotaEntity(DEFAULT_NAME), QuotaEntity("alice")
REAUTH_S = 5
BURST = 10
"""What a silent client may send at once at a request a second."""


def make_gateway(who: QuotaEntity = EVERYBODY, **limits: float) -> SaslGateway:
    quotas = ClientQuotas()
    quotas.index.put(who, limits)
    return SaslGateway(UNPARKED, quotas=quotas, reauth_ms={"PLAIN": REAUTH_S * 1_000})


def metered(gateway: SaslGateway) -> SaslDoor:
    """A connection that is metered from its first byte on."""
    door = gateway.open()
    meter(door.connection, gateway.shared.quotas)
    return door


def ask(door: SaslDoor, count: int = 1) -> list[int]:
    """Send so many heartbeats; the throttle times of those that are answered."""
    for _ in range(count):
        door.request(HEARTBEAT, 1, 7, **beat("g", "m", 5))
    door.turn()
    return [answer.throttle_time for _, answer in door.answers(HEARTBEAT, 1)]


def use_up(door: SaslDoor) -> None:
    """Send so much that nothing is read for a second."""
    assert ask(door, BURST + 1) == [0] * BURST + [1_000]
    assert not door.transport.is_reading


@pytest.fixture(params=["open", "metered"])
def door(request: Any) -> SaslDoor:
    """Logged in as alice, and metered before that or since."""
    gateway = make_gateway(request_rate=1.0)
    if request.param == "metered":
        door = metered(gateway)
        door.log_in()
    else:
        door = gateway.open()
        door.log_in()
        meter(door.connection, gateway.shared.quotas)
    assert type(door.connection) is MeteredSaslConnection
    return door


def test_a_client_that_is_logged_in_is_throttled(door: SaslDoor) -> None:
    use_up(door)
    assert ask(door) == [], "it waits"
    door.gateway.clock.advance(1.1)
    assert [answer.throttle_time for _, answer in door.answers(HEARTBEAT, 1)] == [1_000]
    assert door.principal == "User:alice"


def test_the_quota_is_that_of_the_user_who_has_logged_in() -> None:
    gateway = make_gateway(ALICE, request_rate=1.0)
    alice, bob = metered(gateway), metered(gateway)
    alice.log_in("alice")
    bob.log_in("bob")
    use_up(alice)
    assert ask(bob, 3 * BURST) == [0] * 3 * BURST


def test_a_connection_becomes_metered_and_plain_again_while_its_client_is_logged_in() -> None:
    gateway = make_gateway(request_rate=1.0)
    door = gateway.open()
    door.log_in()
    assert ask(door, 2 * BURST) == [0] * 2 * BURST
    connection = door.connection
    exchange = connection.sasl
    meter(connection, gateway.shared.quotas)
    use_up(door)
    door.request(HEARTBEAT, 1, 7, **beat("g", "m", 5))
    stop_metering(connection)
    assert type(connection) is SaslConnection
    door.turn()
    assert [answer.throttle_time for _, answer in door.answers(HEARTBEAT, 1)] == [0]
    assert door.transport.is_reading
    assert (connection.sasl, door.principal) == (exchange, "User:alice")
    door.log_in()
    assert ask(door, 2 * BURST) == [0] * 2 * BURST


def test_a_client_authenticates_again_when_it_is_read_again(door: SaslDoor) -> None:
    clock = door.gateway.clock
    clock.advance(2)
    use_up(door)
    door.request(HANDSHAKE, 1, 7, mechanism="PLAIN")
    door.turn()
    assert door.frames() == []
    clock.advance(1.1)
    [(_, answer)] = door.answers(HANDSHAKE, 1)
    assert answer.error_code == NONE
    assert door.authenticate(plain()).session_lifetime == REAUTH_S * 1_000
    clock.advance(REAUTH_S - 1)
    assert ask(door) == [0]


def test_a_session_may_end_while_its_client_is_muted(door: SaslDoor) -> None:
    clock = door.gateway.clock
    clock.advance(REAUTH_S - 0.5)
    use_up(door)
    commands = len(door.gateway.coordinator.commands)
    door.request(HEARTBEAT, 1, 7, **beat("g", "m", 5))
    clock.advance(1.1)
    assert not door.is_open
    assert door.gateway.refusals == {"session-expired": 1}
    assert len(door.gateway.coordinator.commands) == commands, "nothing is done for it"


def test_a_client_whose_session_ended_while_it_was_muted_may_renew_it(door: SaslDoor) -> None:
    clock = door.gateway.clock
    clock.advance(REAUTH_S - 0.5)
    use_up(door)
    door.request(HANDSHAKE, 1, 7, mechanism="PLAIN")
    clock.advance(1.1)
    [(_, answer)] = door.answers(HANDSHAKE, 1)
    assert answer.error_code == NONE
    assert door.authenticate(plain()).error_code == NONE
    clock.advance(1)
    assert door.is_open
    assert ask(door) == [0]


def test_strangers_use_up_nobodys_quota() -> None:
    """What is not authenticated has no user: a flood of wrong passwords throttles no login."""
    gateway = make_gateway(request_rate=1.0)
    for _ in range(3 * BURST):
        stranger = metered(gateway)
        stranger.ask(VERSIONS, 0)
        stranger.shake_hands()
        stranger.request(36, 2, 7, auth_bytes=plain("alice", "wrong"))
    door = metered(gateway)
    assert door.ask(VERSIONS, 3).throttle_time == 0
    door.log_in()
    assert door.transport.is_reading
    assert ask(door, BURST) == [0] * BURST, "logging in is no request, as in Kafka"
    assert gateway.shared.quotas.throttled_s == {}


def test_a_wrong_password_of_a_muted_client_is_refused_once_it_is_read(door: SaslDoor) -> None:
    clock = door.gateway.clock
    clock.advance(2)
    use_up(door)
    door.request(HANDSHAKE, 1, 7, mechanism="PLAIN")
    clock.advance(1.1)
    assert len(door.frames()) == 1
    door.request(36, 2, 7, auth_bytes=plain("alice", "wrong"))
    door.turn()
    door.pass_delay()
    [(_, answer)] = door.answers(36, 2)
    assert answer.error_code == FAILED
    assert not door.is_open


def test_who_has_gone_while_muted_leaves_nothing(door: SaslDoor) -> None:
    use_up(door)
    door.lose()
    door.gateway.clock.advance(10)
    assert not door.gateway.shared.connections
    assert door.gateway.shared.held.requests == 0
