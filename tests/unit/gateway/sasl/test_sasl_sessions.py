"""Sessions that end and are renewed (KIP-368), and what is kept for repeated requests meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.api import Api, RequestContext
from gateway.apis.access import k17_sasl_handshake, k36_sasl_authenticate
from gateway.apis.cluster import k18_api_versions
from gateway.codec.kio_schema import response_schema
from gateway.settings import GatewaySettings
from tests.support.gateway.fake_coordinator import answer_of
from tests.support.security.sasl_door import (
    AUTHENTICATE,
    FAILED,
    HANDSHAKE,
    HEARTBEAT,
    ILLEGAL_STATE,
    LIST,
    NONE,
    SaslDoor,
    SaslGateway,
    bearer,
    plain,
)
from tests.support.security.tokens import NOW_S, sign
from tests.support.wire.fields import join
from tests.support.wire.frames import make_frame

REAUTH_MS = 60_000
ASKED = response_schema(LIST)
COMMIT = 8
KEPT: Any = object()


class Held:
    """An API whose requests wait until the test answers them."""

    def __init__(self) -> None:
        self.contexts: list[RequestContext] = []
        self.api = Api(LIST, "Held", range(6), self.handle)

    def handle(self, context: RequestContext, request: Any) -> None:
        self.contexts.append(context)

    def answer(self, number: int) -> None:
        self.contexts[number].reply(
            ASKED.ListGroupsResponse(throttle_time=0, error_code=0, groups=())
        )


def limited(**changes: Any) -> SaslGateway:
    names = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER")
    return SaslGateway(reauth_ms=dict.fromkeys(names, REAUTH_MS), **changes)


def with_park(park_ms: int) -> GatewaySettings:
    return replace(GatewaySettings(), gateway_park_ms=park_ms)


def log_in_by_token(door: SaslDoor, **claims: Any) -> Any:
    assert door.shake_hands("OAUTHBEARER").error_code == NONE
    return door.authenticate(bearer(sign(**claims)))


# ------------------------------------------------------------------------------- how long


def test_the_client_is_told_how_long_its_session_is() -> None:
    assert SaslGateway().open().log_in().session_lifetime == 0
    assert limited().open().log_in().session_lifetime == REAUTH_MS
    assert limited().open().log_in_by_scram("bob", "SCRAM-SHA-256").session_lifetime == REAUTH_MS


@pytest.mark.parametrize(("expires_s", "lifetime_ms"), [(30, 30_000), (90, REAUTH_MS), (-10, 0)])
def test_a_session_ends_with_its_token(expires_s: int, lifetime_ms: int) -> None:
    answer = log_in_by_token(limited().open(), exp=NOW_S + expires_s)
    assert (answer.error_code, answer.session_lifetime) == (NONE, lifetime_ms)


@pytest.mark.parametrize("version", [0, 1])
def test_who_is_not_told_is_limited_too(version: int) -> None:
    """As in Kafka: SaslAuthenticate 0 has no field for it, a bare token no request."""
    gateway = limited()
    door = gateway.open()
    door.shake_hands(version=version)
    if version:
        door.authenticate(plain(), 0)
    else:
        door.send_raw(plain())
    gateway.clock.advance(REAUTH_MS / 1_000 + 1)
    door.request(LIST, 4, 1)
    assert not door.is_open


def test_a_session_that_has_ended_is_closed_at_its_next_request() -> None:
    gateway = limited()
    door = gateway.open()
    door.log_in()
    gateway.clock.advance(REAUTH_MS / 1_000)
    assert door.ask(18, 0).error_code == NONE
    gateway.clock.advance(1)
    assert door.is_open
    commands = len(gateway.coordinator.commands)
    door.request(LIST, 4, 1)
    assert not door.is_open
    assert door.frames() == []
    assert len(gateway.coordinator.commands) == commands
    assert gateway.refusals == {"session-expired": 1}


# ---------------------------------------------------------------------------- once more


def test_a_client_authenticates_again() -> None:
    gateway = limited()
    door = gateway.open()
    door.log_in()
    for _ in range(5):
        gateway.clock.advance(REAUTH_MS / 1_000 * 0.9)
        assert door.log_in().session_lifetime == REAUTH_MS
    assert door.ask(18, 0).error_code == NONE


def test_a_client_may_authenticate_again_after_its_session_has_ended() -> None:
    gateway = limited()
    door = gateway.open()
    door.log_in()
    gateway.clock.advance(3 * REAUTH_MS / 1_000)
    door.log_in()
    assert door.ask(18, 0).error_code == NONE


def test_a_client_authenticates_again_by_bare_tokens() -> None:
    gateway = limited()
    door = gateway.open()
    for _ in range(2):
        door.shake_hands(version=0)
        door.send_raw(plain())
        assert door.frames() == [b""]
        gateway.clock.advance(2)
    assert door.ask(18, 0).error_code == NONE


def test_another_principal_is_refused() -> None:
    gateway = limited()
    door = gateway.open()
    door.log_in("alice")
    gateway.clock.advance(2)
    door.shake_hands()
    door.request(AUTHENTICATE, 2, 1, auth_bytes=plain("bob"))
    assert door.frames() == []
    door.pass_delay()
    answer = door.only(AUTHENTICATE, 2)
    assert answer.error_code == FAILED
    assert "Cannot change principals" in answer.error_message
    assert not door.is_open


def test_another_mechanism_is_closed_at_its_token() -> None:
    gateway = limited()
    door = gateway.open()
    door.log_in()
    gateway.clock.advance(2)
    assert door.shake_hands("SCRAM-SHA-256").error_code == NONE
    door.request(AUTHENTICATE, 2, 1, auth_bytes=b"n,,n=alice,r=x")
    door.pass_delay()
    assert not door.is_open
    assert door.frames() == []


def test_wrong_credentials_close_the_connection() -> None:
    gateway = limited()
    door = gateway.open()
    door.log_in()
    gateway.clock.advance(2)
    door.shake_hands()
    door.request(AUTHENTICATE, 2, 1, auth_bytes=plain(password="wrong"))
    door.pass_delay()
    assert door.only(AUTHENTICATE, 2).error_code == FAILED
    assert not door.is_open


def test_once_a_second_is_enough() -> None:
    gateway = limited()
    door = gateway.open()
    door.log_in()
    door.log_in()
    assert door.shake_hands().error_code == ILLEGAL_STATE
    assert door.is_open
    gateway.clock.advance(1)
    door.log_in()


def test_a_session_that_has_ended_is_closed_if_it_is_too_soon_for_another() -> None:
    """The token was expired, by less than clocks may differ: its sessions end at once."""
    gateway = limited()
    door = gateway.open()
    for _ in range(2):
        assert log_in_by_token(door, exp=NOW_S - 10).session_lifetime == 0
        gateway.clock.advance(0.1)
    assert door.shake_hands("OAUTHBEARER").error_code == ILLEGAL_STATE
    assert not door.is_open
    assert gateway.refusals == {"session-expired": 1}


@pytest.mark.parametrize("step", ["handshake", "none"])
def test_no_other_request_is_served_while_a_client_authenticates_again(step: str) -> None:
    gateway = limited()
    door = gateway.open()
    door.log_in()
    gateway.clock.advance(2)
    if step == "handshake":
        door.shake_hands()
    commands = len(gateway.coordinator.commands)
    door.send(b"" if step == "handshake" else make_frame(HANDSHAKE, 1, mechanism="PLAIN"))
    door.request(LIST, 4, 1)
    door.turn()
    assert not door.is_open
    assert len(gateway.coordinator.commands) == commands


def test_a_client_that_does_not_finish_is_closed() -> None:
    gateway = limited(timeout_ms=5_000)
    door = gateway.open()
    door.log_in()
    gateway.clock.advance(10)
    door.shake_hands()
    gateway.clock.advance(4)
    door.connection.check_deadlines(gateway.clock.time())
    assert door.is_open
    gateway.clock.advance(2)
    door.connection.check_deadlines(gateway.clock.time())
    assert not door.is_open


def test_requests_in_flight_are_answered_in_order() -> None:
    held = Held()
    apis = (
        held.api,
        k17_sasl_handshake.API,
        k18_api_versions.API,
        k36_sasl_authenticate.API,
    )
    gateway = limited(apis=apis)
    door = gateway.open()
    door.log_in()
    gateway.clock.advance(2)
    door.request(LIST, 4, 1)
    door.request(HANDSHAKE, 1, 2, mechanism="PLAIN")
    door.request(AUTHENTICATE, 2, 3, auth_bytes=plain())
    door.request(LIST, 4, 4)
    door.turn()
    assert door.frames() == []
    assert len(held.contexts) == 2
    held.answer(1)
    assert door.frames() == []
    held.answer(0)
    assert [int.from_bytes(each[:4], "big") for each in door.frames()] == [1, 2, 3, 4]


# --------------------------------------------------------------------- members and what is kept


def heartbeat(door: SaslDoor, correlation: int = 1) -> None:
    """One that repeats the member's last one."""
    said = join("g", "m", ("t",)) | {"member_epoch": 3}
    door.request(HEARTBEAT, 1, correlation, **said)


def kept_member(gateway: SaslGateway, **claims: Any) -> SaslDoor:
    """A client whose next heartbeat would be answered without decoding it."""
    door = gateway.open()
    log_in_by_token(door, **claims)
    heartbeat(door)
    assert len(door.frames()) == 1
    heartbeat(door)
    assert len(door.frames()) == 1
    assert is_kept(gateway, door)
    return door


def is_kept(gateway: SaslGateway, door: SaslDoor) -> bool:
    """Whether a heartbeat is answered without asking the coordinator."""
    before = len(gateway.coordinator.commands)
    heartbeat(door)
    assert len(door.frames()) == 1
    return len(gateway.coordinator.commands) == before


def test_a_kept_heartbeat_does_not_pass_after_the_end_of_the_session() -> None:
    gateway = limited(settings=with_park(0))
    door = kept_member(gateway)
    gateway.clock.advance(REAUTH_MS / 1_000 - 0.001)
    assert is_kept(gateway, door)
    gateway.clock.pass_by(0.002)
    heartbeat(door)
    assert not door.is_open
    assert door.frames() == []


def test_a_kept_heartbeat_does_not_pass_while_the_client_authenticates_again() -> None:
    gateway = limited(settings=with_park(0))
    door = kept_member(gateway)
    gateway.clock.advance(2)
    door.shake_hands("OAUTHBEARER")
    heartbeat(door)
    assert not door.is_open
    assert door.frames() == []


def test_what_is_kept_stays_where_nothing_has_changed() -> None:
    gateway = limited(settings=with_park(0))
    door = kept_member(gateway)
    gateway.clock.advance(2)
    log_in_by_token(door, iat=NOW_S + 2)
    assert is_kept(gateway, door)
    gateway.clock.advance(REAUTH_MS / 1_000 + 1)
    heartbeat(door)
    assert not door.is_open


def test_what_is_kept_goes_with_the_scopes_it_was_authorized_for() -> None:
    gateway = limited(settings=with_park(0))
    door = kept_member(gateway, scope="a b")
    gateway.clock.advance(2)
    log_in_by_token(door, scope="a")
    assert not is_kept(gateway, door)
    assert gateway.coordinator.commands[-1].caller.groups == ("Group:a",)
    assert is_kept(gateway, door)


def test_kept_commits_go_with_the_scopes_too() -> None:
    gateway = limited()
    door = gateway.open()
    log_in_by_token(door, scope="a b")
    door.connection.repeats[COMMIT] = KEPT
    gateway.clock.advance(2)
    log_in_by_token(door, scope="a b")
    assert door.connection.repeats == {COMMIT: KEPT}
    gateway.clock.advance(2)
    log_in_by_token(door, scope="a")
    assert door.connection.repeats == {}


def test_what_an_earlier_request_keeps_late_goes_too() -> None:
    """A heartbeat of the old scopes is answered after the client has got new ones."""
    gateway = limited(settings=with_park(0))
    door = gateway.open()
    log_in_by_token(door, scope="a b")
    gateway.clock.advance(2)
    gateway.coordinator.held = []
    heartbeat(door)
    door.request(HANDSHAKE, 1, 2, mechanism="OAUTHBEARER")
    door.request(AUTHENTICATE, 2, 3, auth_bytes=bearer(sign(scope="a")))
    door.turn()
    assert door.frames() == []
    [reply] = gateway.coordinator.held
    gateway.coordinator.held = None
    reply(answer_of(gateway.coordinator.commands[-1]))
    assert len(door.frames()) == 3
    assert not is_kept(gateway, door)
    assert gateway.coordinator.commands[-1].caller.groups == ("Group:a",)


def parked_member(gateway: SaslGateway) -> SaslDoor:
    door = gateway.open()
    log_in_by_token(door)
    for _ in range(2):
        heartbeat(door)
        door.gateway.clock.advance(1)
    door.frames()
    heartbeat(door, 9)
    assert door.frames() == []
    assert door.connection.heartbeats.parked is not None
    return door


def test_a_parked_heartbeat_is_answered_when_the_client_authenticates_again() -> None:
    gateway = limited(settings=with_park(5_000))
    door = parked_member(gateway)
    door.request(HANDSHAKE, 1, 10, mechanism="OAUTHBEARER")
    door.request(AUTHENTICATE, 2, 11, auth_bytes=bearer(sign()))
    door.turn()
    assert [int.from_bytes(each[:4], "big") for each in door.frames()] == [9, 10, 11]
    assert door.connection.heartbeats.members
    heartbeat(door, 12)
    assert door.connection.heartbeats.parked is not None


def test_a_heartbeat_that_is_parked_when_the_session_ends_is_answered_and_no_other() -> None:
    gateway = limited(settings=with_park(5_000))
    door = gateway.open()
    log_in_by_token(door, exp=NOW_S + 3)
    for _ in range(2):
        heartbeat(door)
        gateway.clock.advance(1)
    door.frames()
    heartbeat(door, 9)
    assert door.connection.heartbeats.parked is not None
    gateway.clock.advance(10)
    assert [int.from_bytes(each[:4], "big") for each in door.frames()] == [9]
    heartbeat(door, 10)
    assert not door.is_open
    assert door.frames() == []
