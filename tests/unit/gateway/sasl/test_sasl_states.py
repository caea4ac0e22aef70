"""What a listener with SASL takes from a client in each state, by bytes, in virtual time."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from gateway.api import Api, RequestContext
from gateway.apis.access import k17_sasl_handshake, k36_sasl_authenticate
from gateway.apis.api_registry import APIS
from gateway.apis.cluster import k18_api_versions
from gateway.codec.kio_schema import response_schema
from gateway.sasl.failure_delays import FailureDelays
from gateway.settings import GatewaySettings
from security.sasl.oauthbearer import OauthBearer
from tests.support.gateway.fake_coordinator import VirtualClock
from tests.support.gateway.wire_door import Gateway
from tests.support.security.sasl_door import (
    AUTHENTICATE,
    DELAY_S,
    FAILED,
    HANDSHAKE,
    ILLEGAL_STATE,
    LIST,
    NONE,
    UNSUPPORTED_MECHANISM,
    VERSIONS,
    Keys,
    SaslDoor,
    SaslGateway,
    bearer,
    make_mechanisms,
    plain,
)
from tests.support.security.scram import make_client
from tests.support.security.tokens import NOW_S, jwk, key_set, rsa_key, sign, verifier
from tests.support.wire.frames import make_frame

GENERIC = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
)
ASKED = response_schema(LIST)


class Seen:
    """An API that says whom its requests were from."""

    def __init__(self) -> None:
        self.callers: list[Any] = []
        self.api = Api(LIST, "Seen", range(6), self.handle)
        self.apis = (
            self.api,
            k17_sasl_handshake.API,
            k18_api_versions.API,
            k36_sasl_authenticate.API,
        )

    def handle(self, context: RequestContext, request: Any) -> None:
        self.callers.append(context.caller)
        context.reply(ASKED.ListGroupsResponse(throttle_time=0, error_code=0, groups=()))


# ------------------------------------------------------------------------------ who gets in


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("greets", [False, True])
def test_a_client_gets_in_and_its_requests_are_its_own(version: int, greets: bool) -> None:
    seen = Seen()
    door = SaslGateway(apis=seen.apis).open()
    if greets:
        assert door.ask(VERSIONS, 3, client_software_name="c", client_software_version="1")
    answer = door.shake_hands()
    assert (answer.error_code, answer.mechanisms) == (
        NONE,
        ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
    )
    assert door.authenticate(plain(), version).error_code == NONE
    door.ask(LIST, 4)
    assert [(each.principal, each.client_id) for each in seen.callers] == [("User:alice", "c")]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_client_gets_in_by_scram(mechanism: str) -> None:
    door = SaslGateway().open()
    door.log_in_by_scram("bob", mechanism)
    assert door.principal == "User:bob"


def test_a_client_gets_in_by_a_token_and_has_its_scopes() -> None:
    seen = Seen()
    door = SaslGateway(apis=seen.apis).open()
    door.shake_hands("OAUTHBEARER")
    answer = door.authenticate(bearer(sign(scope="read write")))
    assert (answer.error_code, answer.session_lifetime) == (NONE, 600_000)
    door.ask(LIST, 4)
    assert seen.callers[0].groups == ("Group:read", "Group:write")


def test_bytes_may_come_one_at_a_time() -> None:
    seen = Seen()
    door = SaslGateway(apis=seen.apis).open()
    sent = (
        make_frame(VERSIONS, 0)
        + make_frame(HANDSHAKE, 1, mechanism="PLAIN")
        + make_frame(AUTHENTICATE, 2, auth_bytes=plain())
        + make_frame(LIST, 4)
    )
    for at in range(len(sent)):
        door.send(sent[at : at + 1])
        door.turn()
    assert len(door.frames()) == 4
    assert seen.callers[0].principal == "User:alice"


def test_requests_may_follow_at_once() -> None:
    """Nothing of what is behind the token is served before the token is."""
    seen = Seen()
    gateway = SaslGateway(apis=seen.apis)
    door = gateway.open()
    door.send(
        make_frame(HANDSHAKE, 1, mechanism="PLAIN")
        + make_frame(AUTHENTICATE, 2, auth_bytes=plain())
        + make_frame(LIST, 4) * 3
    )
    door.turn()
    assert len(door.frames()) == 5
    assert {each.principal for each in seen.callers} == {"User:alice"}
    other = gateway.open()
    other.send(
        make_frame(HANDSHAKE, 1, mechanism="PLAIN")
        + make_frame(AUTHENTICATE, 2, auth_bytes=plain(password="wrong"))
        + make_frame(LIST, 4) * 3
    )
    other.turn()
    other.pass_delay()
    assert len(other.frames()) == 2
    assert not other.is_open
    assert len(seen.callers) == 3


def test_the_full_frame_limit_applies_once_the_client_is_known() -> None:
    seen = Seen()
    door = SaslGateway(apis=seen.apis, max_receive_size=200).open()
    door.log_in()
    door.send(make_frame(LIST, 4, states_filter=("x" * 300,)))
    assert len(door.frames()) == 1
    assert door.is_open


# ------------------------------------------------------------------- version 0: bare tokens


def test_after_the_first_handshake_tokens_are_bare() -> None:
    seen = Seen()
    door = SaslGateway(apis=seen.apis).open()
    assert door.shake_hands(version=0).error_code == NONE
    door.send_raw(plain())
    assert door.frames() == [b""]
    door.ask(LIST, 4)
    assert seen.callers[0].principal == "User:alice"


def test_bare_tokens_of_scram() -> None:
    door = SaslGateway().open()
    door.shake_hands("SCRAM-SHA-256", 0)
    client = make_client("alice")
    door.send_raw(client.get_client_first().encode())
    [first] = door.frames()
    client.set_server_first(first.decode())
    door.send_raw(client.get_client_final().encode())
    [final] = door.frames()
    client.set_server_final(final.decode())
    assert door.principal == "User:alice"


def test_a_wrong_bare_token_is_closed_without_an_answer() -> None:
    door = SaslGateway().open()
    door.shake_hands(version=0)
    door.send_raw(plain(password="wrong"))
    assert door.is_open
    door.pass_delay()
    assert not door.is_open
    assert door.frames() == []


def test_a_bare_token_may_be_empty() -> None:
    door = SaslGateway().open()
    door.shake_hands(version=0)
    door.send_raw(b"")
    door.pass_delay()
    assert not door.is_open


# ------------------------------------------------------------------------ every API, each state


def to_start(door: SaslDoor) -> None:
    pass


def to_greeted(door: SaslDoor) -> None:
    door.ask(VERSIONS, 0)


def to_tokens(door: SaslDoor) -> None:
    door.shake_hands("SCRAM-SHA-256")


def to_half_way(door: SaslDoor) -> None:
    to_tokens(door)
    door.authenticate(make_client("alice").get_client_first().encode())


ALLOWED = {
    to_start: {HANDSHAKE, VERSIONS},
    to_greeted: {HANDSHAKE},
    to_tokens: {AUTHENTICATE},
    to_half_way: {AUTHENTICATE},
}


@pytest.mark.parametrize("key", sorted({api.key for api in APIS} | {-1, 33, 999}))
@pytest.mark.parametrize("go", ALLOWED)
def test_another_api_closes_the_connection(go: Any, key: int) -> None:
    if key in ALLOWED[go]:
        return
    gateway = SaslGateway()
    door = gateway.open()
    go(door)
    commands = len(gateway.coordinator.commands)
    door.send(struct.pack(">ihhihb", 11, key, 1, 1, -1, 0))
    door.turn()
    door.pass_delay()
    assert not door.is_open
    assert len(gateway.coordinator.commands) == commands
    if not (key == HANDSHAKE and go in (to_tokens, to_half_way)):
        assert door.frames() == []


def test_a_handshake_in_place_of_a_token_is_told() -> None:
    door = SaslGateway().open()
    door.shake_hands()
    door.request(HANDSHAKE, 1, 1, mechanism="PLAIN")
    door.pass_delay()
    assert door.only(HANDSHAKE, 1).error_code == ILLEGAL_STATE
    assert not door.is_open


def test_a_token_before_the_handshake_closes() -> None:
    door = SaslGateway().open()
    door.request(AUTHENTICATE, 2, 1, auth_bytes=plain())
    assert not door.is_open
    assert door.frames() == []


@pytest.mark.parametrize("count", [1, 3])
def test_an_unserved_version_of_api_versions_may_be_tried(count: int) -> None:
    door = SaslGateway().open()
    for _ in range(count):
        door.send(struct.pack(">ihhihbb", 12, VERSIONS, 99, 7, -1, 0, 0))
        door.turn()
        assert door.only(VERSIONS, 0).error_code == 35
    assert door.ask(VERSIONS, 0).error_code == NONE
    door.log_in()


def test_api_versions_that_is_refused_may_be_sent_again() -> None:
    door = SaslGateway().open()
    bad = {"client_software_name": "!", "client_software_version": "1"}
    assert door.ask(VERSIONS, 3, **bad).error_code == 42
    assert door.ask(VERSIONS, 0).error_code == NONE
    door.log_in()


def test_all_listeners_advertise_both_apis_and_where_they_are_not_due_they_are_refused() -> None:
    gateway = Gateway()
    door = gateway.connect()
    door.request(VERSIONS, 0, 1)
    [(_, answer)] = door.answers(VERSIONS, 0)
    found = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    assert (found[HANDSHAKE], found[AUTHENTICATE]) == ((0, 1), (0, 2))
    door.request(HANDSHAKE, 1, 1, mechanism="PLAIN")
    [(_, answer)] = door.answers(HANDSHAKE, 1)
    assert (answer.error_code, answer.mechanisms) == (ILLEGAL_STATE, ())
    door.request(AUTHENTICATE, 2, 1, auth_bytes=b"")
    [(_, answer)] = door.answers(AUTHENTICATE, 2)
    assert answer.error_code == ILLEGAL_STATE
    assert door.transport.is_open


def test_after_authentication_both_are_refused_and_the_client_stays() -> None:
    door = SaslGateway().open()
    door.log_in()
    assert door.shake_hands().error_code == ILLEGAL_STATE
    assert door.authenticate(plain("bob")).error_code == ILLEGAL_STATE
    assert door.ask(VERSIONS, 0).error_code == NONE
    assert door.principal == "User:alice"
    assert door.is_open


# ------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("mechanism", ["GSSAPI", "", "plain", "SCRAM-SHA-1", "x" * 1_000])
def test_a_mechanism_that_is_not_enabled_is_told_which_are(mechanism: str, version: int) -> None:
    gateway = SaslGateway(mechanisms={"PLAIN": make_mechanisms()["PLAIN"]})
    door = gateway.open()
    door.request(HANDSHAKE, version, 1, mechanism=mechanism)
    assert door.frames() == []
    door.pass_delay()
    answer = door.only(HANDSHAKE, version)
    assert (answer.error_code, answer.mechanisms) == (UNSUPPORTED_MECHANISM, ("PLAIN",))
    assert not door.is_open
    assert gateway.told.failures == [("/127.0.0.1", "SASL", "", "the mechanism is not enabled")]


def refuse(gateway: SaslGateway, mechanism: str, *tokens: bytes) -> tuple[int, str, float]:
    """The answer to the last token, and how long it took."""
    door = gateway.open()
    door.shake_hands(mechanism)
    for token in tokens[:-1]:
        assert door.authenticate(token).error_code == NONE
    began = gateway.clock.time()
    door.request(AUTHENTICATE, 2, 1, auth_bytes=tokens[-1])
    door.turn()
    assert door.frames() == []
    door.pass_delay()
    answer = door.only(AUTHENTICATE, 2)
    assert not door.is_open
    assert answer.auth_bytes == b""
    return answer.error_code, answer.error_message, gateway.clock.time() - began


def test_wrong_credentials_are_told_late_and_without_why() -> None:
    gateway = SaslGateway()
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        proof = b"c=biws,r=xserver,p=" + b"A" * 43 + b"="
        assert refuse(gateway, mechanism, b"n,,n=alice,r=x", proof) == (
            FAILED,
            GENERIC + mechanism,
            pytest.approx(DELAY_S),
        )
        assert refuse(gateway, mechanism, b"nonsense")[:2] == (FAILED, GENERIC + mechanism)
    tokens = (
        sign(exp=NOW_S - 60),
        sign(aud="other"),
        sign(rsa_key(1)),
        sign(headers={"kid": "unknown"}),
        "e30.e30.x",
    )
    for token in tokens:
        assert refuse(gateway, "OAUTHBEARER", bearer(token))[:2] == (
            FAILED,
            GENERIC + "OAUTHBEARER",
        )
    message = "Authentication failed: Invalid username or password"
    for wrong in (plain(password="wrong"), plain("nobody")):
        assert refuse(gateway, "PLAIN", wrong)[:2] == (FAILED, message)
    assert gateway.refusals["authentication-failed"] == len(gateway.told.failures) == 11


def test_what_is_logged_has_nothing_secret(caplog: pytest.LogCaptureFixture) -> None:
    gateway = SaslGateway()
    secret = "hush-hush"
    refuse(gateway, "PLAIN", plain("alice", secret))
    refuse(gateway, "PLAIN", secret.encode())
    refuse(gateway, "SCRAM-SHA-256", f"n,,n={secret},r=x,tokenauth=true".encode())
    refuse(gateway, "OAUTHBEARER", bearer(sign(sub=secret, exp=NOW_S - 60)))
    gateway.open().request(HANDSHAKE, 1, 1, mechanism=secret)
    said = " ".join(str(vars(record)) for record in caplog.records)
    assert "kafka_connection_refused" in said
    assert secret not in f"{said} {gateway.told.failures}"


def test_others_are_served_while_a_refusal_is_delayed() -> None:
    gateway = SaslGateway()
    wrong, right = gateway.open(), gateway.open()
    wrong.shake_hands()
    wrong.request(AUTHENTICATE, 2, 1, auth_bytes=plain(password="wrong"))
    right.log_in()
    assert wrong.frames() == []


def test_a_client_that_goes_meanwhile_leaves_nothing() -> None:
    gateway = SaslGateway()
    door = gateway.open()
    door.shake_hands()
    door.request(AUTHENTICATE, 2, 1, auth_bytes=plain(password="wrong"))
    door.lose()
    door.pass_delay()
    assert len(gateway.shared.delays) == 0
    assert door.frames() == []


def test_delayed_refusals_are_bounded_in_number() -> None:
    clock = VirtualClock()
    delays = FailureDelays(clock, most=3)
    ended: list[int] = []
    for number in range(5):
        delays.add(100, lambda number=number: ended.append(number))
    assert (ended, len(delays)) == ([0, 1], 3)
    clock.advance(0.1)
    assert (ended, len(delays)) == ([0, 1, 2, 3, 4], 0)


def test_without_a_delay_the_answer_is_sent_at_once() -> None:
    gateway = SaslGateway(failure_delay_ms=0)
    door = gateway.open()
    door.shake_hands()
    door.request(AUTHENTICATE, 2, 1, auth_bytes=plain(password="wrong"))
    assert door.only(AUTHENTICATE, 2).error_code == FAILED
    assert not door.is_open


# ------------------------------------------------------------------------------ limits


@pytest.mark.parametrize("length", [-1, -(2**31), 201, 2**31 - 1])
@pytest.mark.parametrize("go", [*ALLOWED, lambda door: door.shake_hands(version=0)])
def test_a_frame_is_refused_by_its_length_alone(go: Any, length: int) -> None:
    gateway = SaslGateway(max_receive_size=200)
    door = gateway.open()
    go(door)
    door.send(struct.pack(">i", length))
    assert not door.is_open
    assert gateway.refusals == {"frame-length": 1}


def test_the_lesser_of_two_limits_applies() -> None:
    settings = replace(GatewaySettings(), gateway_unauthenticated_request_max_bytes=100)
    for gateway in (SaslGateway(settings), SaslGateway(max_receive_size=100)):
        door = gateway.open()
        door.send(struct.pack(">i", 101))
        assert not door.is_open


def test_a_long_token_within_the_limit_is_refused_as_a_token() -> None:
    gateway = SaslGateway()
    for mechanism in make_mechanisms():
        code, _, _ = refuse(gateway, mechanism, b"x" * 500_000)
        assert code == FAILED


def test_a_short_frame_is_refused() -> None:
    door = SaslGateway().open()
    door.send(struct.pack(">i", 7) + b"\0" * 7)
    assert not door.is_open


def test_a_client_has_to_authenticate_in_time() -> None:
    gateway = SaslGateway(timeout_ms=5_000)
    slow, known, refused = gateway.open(), gateway.open(), gateway.open()
    slow.shake_hands("SCRAM-SHA-256")
    known.log_in()
    refused.shake_hands()
    gateway.clock.advance(4.95)
    slow.authenticate(b"n,,n=alice,r=x")
    refused.request(AUTHENTICATE, 2, 1, auth_bytes=plain(password="wrong"))
    gateway.clock.pass_by(0.06)
    for door in (slow, known, refused):
        door.connection.check_deadlines(gateway.clock.time())
    assert (slow.is_open, known.is_open, refused.is_open) == (False, True, True)
    assert gateway.refusals["authentication-timeout"] == 1


def test_a_flood_of_greetings_takes_turns() -> None:
    gateway = SaslGateway()
    door = gateway.open()
    door.send(struct.pack(">ihhihbb", 12, VERSIONS, 99, 7, -1, 0, 0) * 1_000)
    assert len(door.frames()) == 1
    assert not door.transport.is_reading
    gateway.clock.turn()
    assert len(door.frames()) <= 2


# ------------------------------------------------------------------------- keys of tokens


def make_keys_gateway() -> tuple[SaslGateway, Keys, list[Any]]:
    keys, sets = Keys(), [key_set(jwk(rsa_key()))]
    check = verifier()
    check._keys = lambda: sets[-1]
    return SaslGateway(mechanisms={"OAUTHBEARER": OauthBearer(check)}, keys=keys), keys, sets


def test_a_token_with_a_new_key_waits_for_it() -> None:
    gateway, keys, sets = make_keys_gateway()
    door = gateway.open()
    door.shake_hands("OAUTHBEARER")
    door.send(
        make_frame(AUTHENTICATE, 2, auth_bytes=bearer(sign(rsa_key(1), headers={"kid": "k2"})))
        + make_frame(VERSIONS, 0)
    )
    door.turn()
    assert door.frames() == []
    sets.append(key_set(jwk(rsa_key()), jwk(rsa_key(1), "k2")))
    keys.come()
    door.turn()
    assert len(door.frames()) == 2
    assert door.principal == "User:alice"


def test_a_token_whose_key_nobody_has_is_refused_after_one_look() -> None:
    gateway, keys, _ = make_keys_gateway()
    door = gateway.open()
    door.shake_hands("OAUTHBEARER")
    door.request(AUTHENTICATE, 2, 1, auth_bytes=bearer(sign(headers={"kid": "k2"})))
    keys.come()
    assert keys.waiting == []
    door.pass_delay()
    assert door.only(AUTHENTICATE, 2).error_code == FAILED
    assert not door.is_open


def test_a_client_that_goes_while_keys_are_looked_for_is_forgotten() -> None:
    gateway, keys, _ = make_keys_gateway()
    door = gateway.open()
    door.shake_hands("OAUTHBEARER")
    door.request(AUTHENTICATE, 2, 1, auth_bytes=bearer(sign(headers={"kid": "k2"})))
    door.lose()
    keys.come()
    assert gateway.told.failures == []


# --------------------------------------------------------------------------- any order of steps


STEPS = {
    "versions": make_frame(VERSIONS, 0),
    "handshake": make_frame(HANDSHAKE, 1, mechanism="PLAIN"),
    "old handshake": make_frame(HANDSHAKE, 0, mechanism="PLAIN"),
    "right": make_frame(AUTHENTICATE, 2, auth_bytes=plain()),
    "wrong": make_frame(AUTHENTICATE, 2, auth_bytes=plain(password="wrong")),
    "bare": struct.pack(">i", len(plain())) + plain(),
    "list": make_frame(LIST, 4),
}


def count_served(steps: Sequence[str]) -> int:
    """How many requests of a client that takes these steps may be served."""
    stage, served = "start", 0
    for step in steps:
        match stage, step:
            case "start", "versions":
                stage = "greeted"
            case (("start" | "greeted"), "handshake"):
                stage = "tokens"
            case (("start" | "greeted"), "old handshake"):
                stage = "bare tokens"
            case ("tokens", "right") | ("bare tokens", "bare"):
                stage = "known"
            case "known", "list":
                served += 1
            case "known", "bare":
                break
            case "known", _:
                pass
            case _:
                break
    return served


def test_no_order_of_steps_serves_a_client_that_is_not_known() -> None:
    closed: set[tuple[str, ...]] = set()
    for steps in itertools.product(STEPS, repeat=4):
        if any(steps[:count] in closed for count in range(len(steps))):
            continue
        seen = Seen()
        gateway = SaslGateway(apis=seen.apis)
        door = gateway.open()
        for count, step in enumerate(steps, start=1):
            door.send(STEPS[step])
            door.turn()
            if not door.is_open:
                closed.add(steps[:count])
                break
        assert len(seen.callers) == count_served(steps), steps
        assert {each.principal for each in seen.callers} <= {"User:alice"}
