"""SCRAM: the example of its RFC, what is refused, and that nobody learns who exists."""

from __future__ import annotations

import base64

import pytest
import scramp

from model.access.scram import ITERATIONS_MAX, ScramCredential, ScramMechanism
from security.sasl.conversation import Authenticated, Challenge, NotAuthenticated
from security.sasl.scram import TOKEN_BYTES_MAX, Scram, ScramConversation
from security.sasl.scram_users import PasswordVerifier
from security.scram_credentials import ScramCredentials
from tests.support.security.scram import (
    PASSWORD,
    find_secret,
    make_client,
    make_credential,
    make_credentials,
)

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512


def begin(
    credentials: ScramCredentials, mechanism: ScramMechanism = SHA_256, nonce: str = "server"
) -> ScramConversation:
    return Scram(mechanism, credentials, find_secret).begin(nonce)


def challenge(server: ScramConversation, first: str) -> str:
    step = server.answer(first.encode(), 0.0)
    assert isinstance(step, Challenge)
    return step.token.decode()


def log_in(server: ScramConversation, client: scramp.ScramClient) -> Authenticated:
    client.set_server_first(challenge(server, client.get_client_first()))
    step = server.answer(client.get_client_final().encode(), 0.0)
    assert isinstance(step, Authenticated)
    client.set_server_final(step.token.decode())
    return step


def refusal(server: ScramConversation, *tokens: bytes) -> str:
    for token in tokens[:-1]:
        server.answer(token, 0.0)
    with pytest.raises(NotAuthenticated) as caught:
        server.answer(tokens[-1], 0.0)
    assert caught.value.message is None
    return caught.value.reason


def test_the_messages_are_those_of_rfc_7677() -> None:
    credentials = ScramCredentials()
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    credentials.put("user", SHA_256, make_credential("pencil", salt=salt))
    server = begin(credentials, nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    assert challenge(server, "n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == (
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    step = server.answer(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        0.0,
    )
    assert isinstance(step, Authenticated)
    assert step.identity.principal == "User:user"
    assert step.token == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
@pytest.mark.parametrize("user", ["alice", "a=b,c", "ünï"])
def test_a_client_with_the_password_is_let_in(user: str, mechanism: ScramMechanism) -> None:
    server = begin(make_credentials("alice", "a=b,c", "ünï"), mechanism)
    step = log_in(server, make_client(user, mechanism=mechanism))
    assert step.identity.principal == f"User:{user}"


def test_a_name_is_taken_as_it_is_sent() -> None:
    """SASLprep makes one name of these two; Kafka knows them apart."""
    credentials = make_credentials("ﬁn")
    server = begin(credentials)
    client = make_client("fin")
    client.set_server_first(challenge(server, client.get_client_first()))
    assert refusal(server, client.get_client_final().encode()) == "wrong user or password"
    server = begin(credentials)
    client = make_client("fin")
    bare = client.get_client_first().replace("n=fin", "n=ﬁn")
    client.client_first_bare = bare.removeprefix("n,,")
    client.set_server_first(challenge(server, bare))
    step = server.answer(client.get_client_final().encode(), 0.0)
    assert isinstance(step, Authenticated)
    assert step.identity.principal == "User:ﬁn"


def wrong(user: str, password: str, credentials: ScramCredentials) -> tuple[str, str]:
    """The salt and count that a client sees, and the reason of the refusal."""
    server = begin(credentials)
    client = make_client(user, password)
    first = challenge(server, client.get_client_first())
    client.set_server_first(first)
    return first.split(",", 1)[1], refusal(server, client.get_client_final().encode())


def test_a_wrong_password_and_an_unknown_user_are_the_same() -> None:
    credentials = make_credentials("alice")
    seen_known, why_known = wrong("alice", "wrong", credentials)
    seen_unknown, why_unknown = wrong("nobody", PASSWORD, credentials)
    assert why_known == why_unknown == "wrong user or password"
    assert len(seen_known) == len(seen_unknown)


def test_an_unknown_user_has_the_same_salt_each_time_and_no_other_user_has_it() -> None:
    credentials = make_credentials("alice")
    first, again = (wrong("nobody", "x", credentials)[0] for _ in range(2))
    assert first == again
    assert first != wrong("somebody", "x", credentials)[0]
    other = Scram(SHA_256, credentials, lambda: b"another secret").begin("server")
    assert challenge(other, "n,,n=nobody,r=x").split(",", 1)[1] != first


def test_a_user_with_too_few_iterations_is_as_an_unknown_one() -> None:
    credentials = ScramCredentials()
    good = make_credential()
    weak = ScramCredential(good.salt, 4_095, good.stored_key, good.server_key)
    credentials.put("alice", SHA_256, weak)
    assert "i=4095" not in challenge(begin(credentials), "n,,n=alice,r=x")


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\xff",
        b"n",
        b"n,,",
        b"n,,n=alice",
        b"n,,r=x,n=alice",
        b"n,,n=,r=x",
        b"n,,n=a=b,r=x",
        b"n,,n=alice,r=",
        b"n,,n=alice,r=x y",
        b"n,,n=alice,n=bob,r=x",
        b"n,,m=ext,n=alice,r=x",
        b"n,,n=alice,r=x,tokenauth=true",
        b"n,a=bob,n=alice,r=x",
        b"p=tls-unique,,n=alice,r=x",
        b"p=tls-exporter,,n=alice,r=x",
        b"z,,n=alice,r=x",
        b"n,," + b"n=" + b"a" * TOKEN_BYTES_MAX + b",r=x",
        b"," * 4_000,
    ],
)
def test_a_malformed_first_message_is_refused(first: bytes) -> None:
    reason = refusal(begin(make_credentials("alice")), first)
    assert "alice" not in reason


def test_a_client_that_knows_no_channel_binding_may_say_so() -> None:
    server = begin(make_credentials("alice"))
    assert challenge(server, "y,,n=alice,r=x").startswith("r=xserver,")


@pytest.mark.parametrize(
    "final",
    [
        "c=biws,r=xserver,p=",
        "c=biws,r=xserver,p=AAAA",
        "c=biws,r=xserver,p=!",
        "c=biws,r=other,p={proof}",
        "c=eSws,r=xserver,p={proof}",
        "r=xserver,p={proof}",
        "c=biws,r=xserver",
        "n,,n=alice,r=x",
        "",
    ],
)
def test_a_malformed_last_message_is_refused(final: str) -> None:
    proof = base64.b64encode(b"\0" * 32).decode()
    token = final.replace("{proof}", proof).encode()
    refusal(begin(make_credentials("alice")), b"n,,n=alice,r=x", token)


def test_nothing_is_answered_after_the_end() -> None:
    server = begin(make_credentials("alice"))
    client = make_client("alice")
    log_in(server, client)
    refusal(server, b"n,,n=alice,r=x")


class TestPasswords:
    def verify(self, user: str, password: str, credentials: ScramCredentials | None = None) -> str:
        found = credentials or make_credentials("alice")
        return PasswordVerifier(found, find_secret).verify(user, password).principal

    def test_the_right_password_is_let_in(self) -> None:
        assert self.verify("alice", PASSWORD) == "User:alice"
        only = ScramCredentials()
        only.put("bob", SHA_512, make_credential(mechanism=SHA_512))
        assert self.verify("bob", PASSWORD, only) == "User:bob"

    @pytest.mark.parametrize(
        ("user", "password"),
        [
            ("alice", "wrong"),
            ("alice", ""),
            ("nobody", PASSWORD),
            ("", PASSWORD),
            ("alice", "x" * 2_000),
            ("x" * 2_000, PASSWORD),
            ("alice", "\ud800"),
            ("\ud800", PASSWORD),
        ],
    )
    def test_others_are_not(self, user: str, password: str) -> None:
        with pytest.raises(NotAuthenticated) as caught:
            self.verify(user, password)
        assert "alice" not in caught.value.reason

    def test_the_work_for_a_password_is_bounded(self) -> None:
        credentials = ScramCredentials()
        good = make_credential()
        costly = ScramCredential(good.salt, 2**31 - 1, good.stored_key, good.server_key)
        credentials.put("alice", SHA_256, costly)
        assert ITERATIONS_MAX < 20_000
        with pytest.raises(NotAuthenticated):
            self.verify("alice", PASSWORD, credentials)
