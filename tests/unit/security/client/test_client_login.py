"""The client's side of each mechanism, against the server's own side, and against a hostile one."""

from __future__ import annotations

from pathlib import Path

import pytest

from model.access.scram import ScramMechanism
from model.secret import Secret
from security.client.client_login import ClientLogin, make_login, read_token
from security.sasl.conversation import Authenticated, Mechanism, NotAuthenticated
from security.sasl.oauthbearer import OauthBearer
from security.sasl.plain import Plain
from security.sasl.scram import Scram
from tests.support.security.scram import PASSWORD, find_secret, make_credentials
from tests.support.security.tokens import NOW_S, sign, verifier

SCRAM = [each.value for each in ScramMechanism]


def make(mechanism: str, password: str = PASSWORD, token: str = "") -> ClientLogin:
    return make_login(mechanism, "muster", password, lambda: token)


def converse(login: ClientLogin, mechanism: Mechanism) -> str:
    """Who the server says it is."""
    server = mechanism.begin("nonce-of-the-server")
    token: bytes | None = login.first()
    while True:
        assert token is not None
        step = server.answer(token, NOW_S)
        token = login.answer(step.token)
        if isinstance(step, Authenticated):
            assert token is None
            return step.identity.principal


def test_plain() -> None:
    assert converse(make("PLAIN"), Plain({"muster": Secret(PASSWORD)})) == "User:muster"


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_scram(mechanism: ScramMechanism) -> None:
    server = Scram(mechanism, make_credentials("muster"), find_secret)
    assert converse(make(mechanism.value), server) == "User:muster"
    with pytest.raises(NotAuthenticated):
        converse(make(mechanism.value, "wrong"), server)


def test_oauthbearer() -> None:
    token = sign()
    assert converse(make("OAUTHBEARER", token=token), OauthBearer(verifier())).startswith("User:")


def test_a_refused_token_ends_the_login() -> None:
    with pytest.raises(NotAuthenticated, match="refuses the token"):
        make("OAUTHBEARER", token="a.b.c").answer(b'{"status":"invalid_token"}')


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"\xff\xfe",
        b"r=short,s=c2FsdHNhbHRzYWx0c2FsdA==,i=4096",
        b"e=other-error",
        b"r=NONCEx,s=!!!,i=4096",
        b"r=NONCEx,i=4096",
        b"r=NONCEx,s=c2FsdHNhbHRzYWx0c2FsdA==",
        b"r=NONCEx,s=c2FsdHNhbHRzYWx0c2FsdA==,i=0",
        b"r=NONCEx,s=c2FsdHNhbHRzYWx0c2FsdA==,i=999999999",
        b"r=NONCEx,s=c2FsdHNhbHRzYWx0c2FsdA==,i=99999999999999999999",
        b"x" * 100_000,
    ],
)
@pytest.mark.parametrize("mechanism", SCRAM)
def test_a_hostile_first_token_of_scram(mechanism: str, token: bytes) -> None:
    login = make(mechanism)
    nonce = login.first().rpartition(b"r=")[2]
    with pytest.raises(NotAuthenticated):
        login.answer(token.replace(b"NONCE", nonce))


@pytest.mark.parametrize("last", [b"", b"v=AAAA", b"e=invalid-proof", b"garbage", b"\xff"])
def test_a_server_that_does_not_know_the_password_is_not_believed(last: bytes) -> None:
    login = make("SCRAM-SHA-256")
    nonce = login.first().rpartition(b"r=")[2]
    assert login.answer(b"r=" + nonce + b"x,s=c2FsdHNhbHRzYWx0c2FsdA==,i=4096")
    with pytest.raises(NotAuthenticated):
        login.answer(last)


def test_tokens_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("a.b.c\n")
    assert read_token(str(file)) == "a.b.c"
    for bad in ("", " \n", "a b", "a\x00b", "ü", "x" * 70_000):
        file.write_text(bad)
        with pytest.raises(NotAuthenticated, match="no token"):
            read_token(str(file))
    with pytest.raises(NotAuthenticated, match="cannot be read"):
        read_token(str(tmp_path / "none"))
