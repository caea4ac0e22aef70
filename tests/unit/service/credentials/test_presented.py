"""What is read of `authorization`."""

from __future__ import annotations

import base64

import pytest

from coordinator.service.credentials.presented import (
    BearerToken,
    MalformedCredentials,
    UserPassword,
    find_presented,
)
from model.secret import Secret


def basic(text: bytes) -> str:
    return f"Basic {base64.b64encode(text).decode()}"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("Bearer a.b.c", BearerToken(Secret("a.b.c"))),
        ("bearer  a.b.c ", BearerToken(Secret("a.b.c"))),
        (basic(b"alice:secret"), UserPassword("alice", Secret("secret"))),
        (basic("älice:s:ß".encode()), UserPassword("älice", Secret("s:ß"))),
    ],
)
def test_credentials(value: str, found: object) -> None:
    metadata = (("user-agent", "x"), ("authorization", value))
    assert find_presented(metadata) == found


@pytest.mark.parametrize("metadata", [None, (), (("user-agent", "x"),)])
def test_none(metadata: tuple[tuple[str, str], ...] | None) -> None:
    assert find_presented(metadata) is None


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer",
        "Bearer ",
        "Basic",
        "Basic !!!",
        basic(b"alice"),
        basic(b":secret"),
        basic(b"alice:"),
        basic(b"\xff:secret"),
        "Digest x",
        "a.b.c",
        b"Bearer a.b.c",
    ],
)
def test_what_is_malformed(value: str | bytes) -> None:
    with pytest.raises(MalformedCredentials):
        find_presented((("authorization", value),))


def test_two_are_refused() -> None:
    with pytest.raises(MalformedCredentials):
        find_presented((("authorization", "Bearer a"), ("authorization", "Bearer b")))


def test_nothing_shows_a_secret() -> None:
    for value in ("Bearer planted", basic(b"alice:planted")):
        assert "planted" not in repr(find_presented((("authorization", value),)))
