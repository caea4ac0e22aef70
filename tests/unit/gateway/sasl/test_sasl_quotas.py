"""Quotas on listeners with SASL: they are those of the client that was shown, of nobody else."""

from __future__ import annotations

from typing import Any

from gateway.quotas.metered_connection import meter
from model.access.quotas import DEFAULT_NAME, QuotaEntity
from security.quotas.client_quotas import ClientQuotas
from tests.support.security.sasl_door import (
    AUTHENTICATE,
    FAILED,
    HANDSHAKE,
    HEARTBEAT,
    UNSUPPORTED_MECHANISM,
    VERSIONS,
    SaslDoor,
    SaslGateway,
    plain,
)
from tests.support.wire.fields import beat

BURST = 20
"""Requests that a rate of two a second allows at once."""


def make_gateway(entity: QuotaEntity, **changes: Any) -> SaslGateway:
    quotas = ClientQuotas()
    quotas.index.put(entity, {"request_rate": 2.0})
    return SaslGateway(quotas=quotas, **changes)


def connect(gateway: SaslGateway) -> SaslDoor:
    door = gateway.open()
    meter(door.connection, gateway.shared.quotas)
    return door


def test_who_has_not_authenticated_uses_up_nothing() -> None:
    """Else anybody could throttle a client by its id, and all that are about to authenticate."""
    for entity in (QuotaEntity(DEFAULT_NAME), QuotaEntity(client_id=DEFAULT_NAME)):
        gateway = make_gateway(entity)
        for _ in range(3 * BURST):
            nobody = connect(gateway)
            nobody.ask(VERSIONS, 0)
            nobody.shake_hands()
            nobody.lose()
        door = connect(gateway)
        door.log_in()
        assert door.transport.is_reading
        door.request(HEARTBEAT, 1, 1, **beat("g", "m", 5))
        assert door.transport.is_reading


def test_who_has_authenticated_is_throttled() -> None:
    gateway = make_gateway(QuotaEntity("alice"))
    door = connect(gateway)
    door.log_in()
    for number in range(BURST):
        door.request(HEARTBEAT, 1, number, **beat("g", "m", 5))
    assert door.transport.is_reading
    door.request(HEARTBEAT, 1, BURST, **beat("g", "m", 5))
    assert not door.transport.is_reading


def test_a_failure_is_told_before_the_connection_ends() -> None:
    """Also without a delay, and when a session is renewed: else the client tries for ever."""
    gateway = make_gateway(QuotaEntity(DEFAULT_NAME), failure_delay_ms=0)
    door = connect(gateway)
    door.shake_hands()
    door.request(AUTHENTICATE, 2, 7, auth_bytes=plain(password="wrong"))
    assert door.only(AUTHENTICATE, 2).error_code == FAILED
    assert not door.is_open


def test_a_failure_to_renew_a_session_is_told_too() -> None:
    gateway = make_gateway(
        QuotaEntity(DEFAULT_NAME), failure_delay_ms=0, reauth_ms={"PLAIN": 60_000}
    )
    door = connect(gateway)
    door.log_in()
    door.request(HANDSHAKE, 1, 7, mechanism="NTLM")
    assert door.only(HANDSHAKE, 1).error_code == UNSUPPORTED_MECHANISM
    assert not door.is_open
