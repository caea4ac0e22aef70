"""SCRAM against the example of its RFC, and PLAIN."""

from __future__ import annotations

import pytest

from cli.load.wire.sasl import SaslError, ScramClient, encode_plain

# The example of RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def make_client() -> ScramClient:
    return ScramClient("SCRAM-SHA-256", "user", "pencil", NONCE)


def test_the_messages_are_those_of_the_rfc() -> None:
    client = make_client()
    assert client.encode_first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert client.encode_final(FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    client.check_server(FINAL)


@pytest.mark.parametrize("message", [b"v=AAAA", b"", b"e=invalid-proof", b"\xff"])
def test_a_server_without_the_password_is_found_out(message: bytes) -> None:
    client = make_client()
    client.encode_final(FIRST)
    with pytest.raises(SaslError):
        client.check_server(message)


@pytest.mark.parametrize(
    "message",
    [
        b"r=another,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        FIRST.replace(b"i=4096", b"i=0"),
        FIRST.replace(b"i=4096", b"i=999999999"),
        FIRST.replace(b"i=4096", b"i=many"),
        b"hello",
    ],
)
def test_a_first_message_that_does_not_fit_is_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        make_client().encode_final(message)


def test_names_are_escaped() -> None:
    client = ScramClient("SCRAM-SHA-512", "a,b=c", "x", "n")
    assert client.encode_first() == b"n,,n=a=2Cb=3Dc,r=n"


def test_plain() -> None:
    assert encode_plain("user", "pencil") == b"\0user\0pencil"
