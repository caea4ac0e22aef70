"""Logins that are passed on to the cluster: who gets in, as whom, and what a lost cluster is."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from model.access.scram import ScramMechanism
from security.sasl.conversation import Challenge
from tests.support.security.cluster_logins import FrontGateway
from tests.support.security.sasl_door import (
    AUTHENTICATE,
    FAILED,
    HANDSHAKE,
    LIST,
    NONE,
    UNSUPPORTED_MECHANISM,
    SaslDoor,
    bearer,
    plain,
)
from tests.support.security.tokens import NOW_S, sign

LIFETIME_MS = 60_000


def unsigned(payload: str) -> bytes:
    part = urlsafe_b64encode(payload.encode()).decode().rstrip("=")
    return bearer(f"e30.{part}.x")


def ask_list(door: SaslDoor) -> Any:
    door.request(LIST, 4, 1)
    door.turn()
    return door.answers(LIST, 4)


# -------------------------------------------------------------------------------- who gets in


@pytest.mark.parametrize("version", [0, 1])
def test_a_client_is_who_the_cluster_says_yes_to(version: int) -> None:
    gateway = FrontGateway()
    door = gateway.open()
    answer = door.shake_hands(version=version)
    assert (answer.error_code, set(answer.mechanisms)) == (NONE, set(gateway.logins.mechanisms))
    if version:
        assert door.authenticate(plain()).error_code == NONE
    else:
        door.send_raw(plain())
        assert door.frames() == [b""]
    assert door.principal == "User:alice"
    [login] = gateway.logins.opened
    assert login.heard == ["PLAIN", plain()]
    assert login.is_settled
    assert door.connection.passed is login


@pytest.mark.parametrize("mechanism", [each.value for each in ScramMechanism])
def test_a_client_of_scram_proves_itself_to_the_cluster(mechanism: str) -> None:
    door = FrontGateway().open()
    door.log_in_by_scram("bob", mechanism)
    assert door.principal == "User:bob"


def test_a_token_names_whom_it_is_about() -> None:
    door = FrontGateway().open()
    door.shake_hands("OAUTHBEARER")
    assert door.authenticate(bearer(sign(sub="carol"))).error_code == NONE
    assert door.principal == "User:carol"


def test_nobody_is_served_before_the_cluster_has_answered() -> None:
    gateway = FrontGateway()
    gateway.logins.is_slow = True
    door = gateway.open()
    door.request(HANDSHAKE, 1, 1, mechanism="PLAIN")
    door.request(AUTHENTICATE, 2, 2, auth_bytes=plain())
    door.request(LIST, 4, 3)
    door.turn()
    assert door.frames() == []
    assert gateway.logins.opened[0].heard == ["PLAIN"]
    gateway.logins.come()
    door.turn()
    assert len(door.frames()) == 1
    assert gateway.logins.opened[0].heard == ["PLAIN", plain()]
    assert not gateway.coordinator.commands
    gateway.logins.come()
    door.turn()
    assert door.principal == "User:alice"
    assert len(gateway.coordinator.commands) == 1


# ------------------------------------------------------------------------------ who does not


def test_the_clusters_no_is_passed_back() -> None:
    gateway = FrontGateway()
    door = gateway.open()
    door.shake_hands()
    door.request(AUTHENTICATE, 2, 7, auth_bytes=plain(password="wrong"))
    door.turn()
    door.pass_delay()
    answer = door.only(AUTHENTICATE, 2)
    assert (answer.error_code, answer.error_message) == (
        FAILED,
        "the broker: wrong user or password",
    )
    assert not door.is_open
    assert gateway.logins.opened[0].is_closed
    assert gateway.told.failures[0][2:] == ("PLAIN", "refused by the cluster")


@pytest.mark.parametrize("mechanism", ["GSSAPI", "NONSENSE"])
def test_a_mechanism_that_shows_no_name_is_not_offered(mechanism: str) -> None:
    gateway = FrontGateway()
    gateway.logins.more = ("GSSAPI",)
    gateway.logins.mechanisms["GSSAPI"] = gateway.logins.mechanisms["PLAIN"]
    del gateway.logins.mechanisms["SCRAM-SHA-512"]
    door = gateway.open()
    door.request(HANDSHAKE, 1, 7, mechanism=mechanism)
    door.turn()
    door.pass_delay()
    answer = door.only(HANDSHAKE, 1)
    assert answer.error_code == UNSUPPORTED_MECHANISM
    assert set(answer.mechanisms) == {"PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"}
    assert not door.is_open


def fill(**claims: Any) -> str:
    return json.dumps({"sub": "alice", "exp": NOW_S + 60} | claims)


@pytest.mark.parametrize(
    ("mechanism", "token"),
    [
        ("PLAIN", b"bob\0alice\0secret"),
        ("PLAIN", b"\0alice"),
        ("PLAIN", b"\0alice\0a\0b"),
        ("PLAIN", b"\0\0secret"),
        ("PLAIN", b"\0al\xffice\0secret"),
        ("PLAIN", b"\0ali\nce\0secret"),
        ("SCRAM-SHA-256", b"n,a=bob,n=alice,r=abc"),
        ("SCRAM-SHA-256", b"n,,m=x,n=alice,r=abc"),
        ("SCRAM-SHA-256", b"n,,n=alice,r=abc,tokenauth=true"),
        ("SCRAM-SHA-256", b"p=tls-unique,,n=alice,r=abc"),
        ("SCRAM-SHA-256", b"n,,n=al=ice,r=abc"),
        ("SCRAM-SHA-256", b"n,,r=abc,n=alice"),
        ("OAUTHBEARER", b"n,,\1auth=Bearer abc\1\1"),
        ("OAUTHBEARER", unsigned("[]")),
        ("OAUTHBEARER", unsigned("[" * 10_000)),
        ("OAUTHBEARER", unsigned(fill(sub=1))),
        ("OAUTHBEARER", unsigned(fill(sub=" alice"))),
        ("OAUTHBEARER", unsigned(fill(exp="soon"))),
        ("OAUTHBEARER", unsigned(fill(exp=float("nan")))),
        ("OAUTHBEARER", unsigned('{"sub": "alice", "sub": "bob", "exp": 1}')),
        ("OAUTHBEARER", unsigned(fill()).replace(b"n,,", b"n,a=bob,")),
    ],
)
def test_a_message_that_could_be_read_in_two_ways_is_refused_here(
    mechanism: str, token: bytes
) -> None:
    gateway = FrontGateway()
    door = gateway.open()
    door.shake_hands(mechanism)
    door.request(AUTHENTICATE, 2, 7, auth_bytes=token)
    door.turn()
    door.pass_delay()
    assert door.only(AUTHENTICATE, 2).error_code == FAILED
    assert not door.is_open
    assert gateway.logins.opened[0].heard == [mechanism]
    assert gateway.logins.opened[0].is_closed


class Undecided:
    """A mechanism that always asks for more."""

    name = "SCRAM-SHA-256"

    def begin(self, nonce: str) -> Undecided:
        return self

    def answer(self, token: bytes, now_s: float) -> Challenge:
        return Challenge(b"")


def test_a_cluster_that_says_neither_yes_nor_no_lets_nobody_in() -> None:
    gateway = FrontGateway()
    gateway.logins.mechanisms["SCRAM-SHA-256"] = Undecided()
    door = gateway.open()
    door.shake_hands("SCRAM-SHA-256")
    assert door.authenticate(b"n,,n=alice,r=abc").error_code == NONE
    door.request(AUTHENTICATE, 2, 7, auth_bytes=b"c=biws,r=abc,p=eA==")
    door.turn()
    door.pass_delay()
    assert door.only(AUTHENTICATE, 2).error_code == FAILED
    assert not door.is_open
    assert gateway.logins.opened[0].is_closed


# ---------------------------------------------------------------------- a cluster that is away


@pytest.mark.parametrize("at_token", [False, True])
def test_a_client_is_closed_without_an_answer_if_the_cluster_gives_none(at_token: bool) -> None:
    gateway = FrontGateway()
    door = gateway.open()
    if at_token:
        door.shake_hands()
    gateway.logins.is_gone = True
    if at_token:
        door.request(AUTHENTICATE, 2, 1, auth_bytes=plain())
    else:
        door.request(HANDSHAKE, 1, 1, mechanism="PLAIN")
    door.turn()
    assert door.frames() == []
    assert not door.is_open
    assert gateway.refusals == {"cluster-unreachable": 1}
    assert gateway.told.failures == []


def test_a_client_that_goes_takes_its_login_along() -> None:
    gateway = FrontGateway()
    gateway.logins.is_slow = True
    door = gateway.open()
    door.request(HANDSHAKE, 1, 1, mechanism="PLAIN")
    door.turn()
    door.connection.connection_lost(None)
    assert gateway.logins.opened[0].is_closed
    gateway.logins.come()
    door.turn()
    assert door.frames() == []


def test_a_client_that_is_known_takes_its_login_along() -> None:
    gateway = FrontGateway()
    door = gateway.open()
    door.log_in()
    assert not gateway.logins.opened[0].is_closed
    door.connection.connection_lost(None)
    assert gateway.logins.opened[0].is_closed


# ------------------------------------------------------------------------------------ sessions


def test_a_session_is_as_long_as_the_cluster_says() -> None:
    gateway = FrontGateway()
    gateway.logins.lifetime_ms = LIFETIME_MS
    door = gateway.open()
    assert door.log_in().session_lifetime == LIFETIME_MS
    gateway.clock.advance(LIFETIME_MS / 1_000 + 1)
    door.request(LIST, 4, 1)
    assert not door.is_open
    assert gateway.refusals == {"session-expired": 1}


def test_a_session_ends_with_its_token_though_the_cluster_tells_no_end() -> None:
    door = FrontGateway().open()
    door.shake_hands("OAUTHBEARER")
    answer = door.authenticate(bearer(sign(exp=NOW_S + 30)))
    assert answer.session_lifetime == 30_000


def test_a_client_authenticates_again_on_another_connection() -> None:
    gateway = FrontGateway()
    gateway.logins.lifetime_ms = LIFETIME_MS
    door = gateway.open()
    for taken in (False, True, False):
        door.log_in()
        login = gateway.logins.opened[-1]
        assert door.connection.passed is login
        login.is_taken = taken
        gateway.clock.advance(LIFETIME_MS / 1_000 * 0.9)
    # What was sent on a connection is answered there: who sent it closes it.
    assert [each.is_closed for each in gateway.logins.opened] == [True, False, False]


def test_nothing_is_served_while_a_client_authenticates_again() -> None:
    gateway = FrontGateway()
    gateway.logins.lifetime_ms = LIFETIME_MS
    door = gateway.open()
    door.log_in()
    gateway.clock.advance(2)
    gateway.logins.is_slow = True
    door.request(HANDSHAKE, 1, 1, mechanism="PLAIN")
    door.request(LIST, 4, 2)
    door.turn()
    assert door.frames() == []
    assert not gateway.coordinator.commands
    gateway.logins.come()
    door.turn()
    assert not door.is_open
    assert not gateway.coordinator.commands


def test_another_principal_is_refused() -> None:
    gateway = FrontGateway()
    gateway.logins.lifetime_ms = LIFETIME_MS
    door = gateway.open()
    door.log_in("alice")
    gateway.clock.advance(2)
    door.shake_hands()
    door.request(AUTHENTICATE, 2, 1, auth_bytes=plain("bob"))
    door.turn()
    door.pass_delay()
    answer = door.only(AUTHENTICATE, 2)
    assert answer.error_code == FAILED
    assert "Cannot change principals" in answer.error_message
    assert door.principal == "User:alice"
    assert not door.is_open
    assert gateway.logins.opened[1].is_closed


def test_a_client_that_waits_too_long_for_the_cluster_is_closed() -> None:
    gateway = FrontGateway(timeout_ms=30_000)
    gateway.logins.is_slow = True
    door = gateway.open()
    door.request(HANDSHAKE, 1, 1, mechanism="PLAIN")
    door.turn()
    gateway.clock.advance(31)
    door.connection.check_deadlines(gateway.clock.time())
    assert not door.is_open
    assert gateway.refusals == {"authentication-timeout": 1}
