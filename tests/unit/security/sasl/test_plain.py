"""PLAIN: who gets in, and what others hear."""

from __future__ import annotations

import pytest

from model.secret import Secret
from security.sasl.conversation import NotAuthenticated
from security.sasl.plain import TOKEN_BYTES_MAX, Plain

PLAIN = Plain({"alice": Secret("secret"), "bob": Secret("other"), "ünï": Secret("pässwörd")})


def answer(token: bytes) -> str:
    return PLAIN.begin("nonce").answer(token, 0.0).identity.principal


def refusal(token: bytes) -> NotAuthenticated:
    with pytest.raises(NotAuthenticated) as caught:
        answer(token)
    return caught.value


def test_the_right_password_is_let_in() -> None:
    assert answer(b"\0alice\0secret") == "User:alice"
    assert answer(b"alice\0alice\0secret") == "User:alice"
    assert answer("\0ünï\0pässwörd".encode()) == "User:ünï"


def test_a_wrong_password_and_an_unknown_user_are_the_same() -> None:
    found = [
        refusal(token)
        for token in (b"\0alice\0wrong", b"\0alice\0other", b"\0nobody\0secret", b"\0alice\0secre")
    ]
    assert {(each.reason, each.message) for each in found} == {
        ("wrong user or password", "Authentication failed: Invalid username or password")
    }


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"alice",
        b"\0alice",
        b"\0alice\0secret\0",
        b"\0\0secret",
        b"\0alice\0",
        b"\0\xff\0secret",
        b"bob\0alice\0secret",
        b"\0" * 100,
        b"\0alice\0" + b"x" * TOKEN_BYTES_MAX,
    ],
)
def test_a_malformed_token_is_refused(token: bytes) -> None:
    found = refusal(token)
    assert "alice" not in found.reason
    assert "secret" not in f"{found.reason} {found.message}"


def test_who_acts_as_another_is_told_so_only_with_the_right_password() -> None:
    assert "authorization id" in str(refusal(b"bob\0alice\0secret").message)
    assert "authorization id" not in str(refusal(b"bob\0alice\0wrong").message)


def test_passwords_are_not_kept() -> None:
    assert "secret" not in repr(vars(PLAIN))
