"""What the SDK takes as TLS and credentials, and that it shows nothing of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.connection.shared_clients import acquire_shared_client, release_shared_client
from muster.connection.tls_files import TlsFiles
from muster.credentials import Access

TLS = muster.Tls(ca="ca.pem")


def test_no_repr_shows_a_secret() -> None:
    for shown in (
        muster.Basic("alice", "planted"),
        muster.Bearer("planted"),
        muster.Bearer(lambda: "planted"),
        muster.Token("planted", 5),
        muster.Tls(ca="ca.pem", certificate=b"planted", key=b"planted"),
        Access(TLS, muster.Basic("alice", "planted")),
    ):
        assert "planted" not in f"{shown!r} {shown}"
    assert repr(muster.Tls(ca="ca.pem", key=b"k", certificate="c.pem")) == (
        "Tls(ca='ca.pem', certificate='c.pem', key='PEM')"
    )


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"tls": "ca.pem"}, "tls must be a muster.Tls"),
        ({"credentials": ("alice", "secret")}, "credentials must be a muster.Basic"),
        ({"target": "host:1", "credentials": muster.Basic("a", "b")}, "in the clear to host:1"),
    ],
)
def test_arguments_are_checked_where_they_are_given(fields: dict[str, Any], says: str) -> None:
    target = fields.pop("target", "127.0.0.1:1")
    for make in (
        lambda: muster.Member(target, "g", topics=["orders"], **fields),
        lambda: muster.ClassicMember(target, "g", topics=["orders"], **fields),
    ):
        with pytest.raises((TypeError, ValueError), match=says):
            make()


@pytest.mark.parametrize(
    "target", ["127.example.com:1", "127.0.0.1.example.com:1", "127.0.0.1@example.com:1"]
)
def test_a_name_that_looks_like_loopback_is_none(target: str) -> None:
    with pytest.raises(ValueError, match="in the clear"):
        muster.Member(target, "g", topics=["orders"], credentials=muster.Basic("a", "b"))


@pytest.mark.parametrize(
    "make",
    [
        lambda: muster.Basic("alice", b"planted"),  # type: ignore[arg-type]
        lambda: muster.Basic("alice", "planted\ud800"),
        lambda: muster.Token(b"planted"),  # type: ignore[arg-type]
        lambda: muster.Token("planted\ud800"),
        lambda: muster.Bearer("planted\ud800"),
        lambda: muster.Bearer(b"planted"),  # type: ignore[arg-type]
    ],
)
def test_no_error_shows_a_secret(make: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        make()
    assert "planted" not in str(caught.value)
    assert "ud800" not in str(caught.value)


@pytest.mark.parametrize("target", ["127.0.0.1:1", "localhost:1", "[::1]:1"])
def test_loopback_needs_no_tls(target: str) -> None:
    muster.Member(target, "g", topics=["orders"], credentials=muster.Basic("alice", "secret"))


async def test_a_client_has_its_own() -> None:
    async with muster.Client("127.0.0.1:1") as client:
        with pytest.raises(ValueError, match="give them to it"):
            muster.Member(client, "g", topics=["orders"], tls=TLS)


@pytest.mark.parametrize(
    "make",
    [
        lambda: muster.Basic("", "secret"),
        lambda: muster.Basic("a:b", "secret"),
        lambda: muster.Basic("alice", ""),
        lambda: muster.Token("two words"),
        lambda: muster.Token("line\nbreak"),
        lambda: muster.Bearer("two words"),
        lambda: muster.Tls(key="key.pem"),
    ],
)
def test_what_cannot_be_sent_is_refused(make: Any) -> None:
    with pytest.raises(ValueError, match=r"without|needs|characters"):
        make()


@pytest.mark.parametrize("end", ["tomorrow", True, datetime.now(UTC)])
def test_the_end_of_a_token_is_a_number(end: Any) -> None:
    with pytest.raises(TypeError, match="expires_at must be seconds since 1970"):
        muster.Token("token", end)


async def test_clients_are_shared_by_equal_credentials_only() -> None:
    target = "127.0.0.1:1"
    accesses = [
        Access(None, muster.Basic("alice", "secret")),
        Access(None, muster.Basic("alice", "other")),
        Access(None, muster.Bearer("token")),
        Access(),
    ]
    clients = [acquire_shared_client(target, access=access) for access in accesses]
    assert len(set(map(id, clients))) == len(accesses)
    again = acquire_shared_client(target, access=Access(None, muster.Basic("alice", "sec" + "ret")))
    assert again is clients[0]
    for client in (*clients, again):
        await release_shared_client(client)


def test_files_are_read_again_when_they_change(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    files = TlsFiles(muster.Tls(ca=ca))
    with pytest.raises(muster.MusterError, match=r"cannot read .*ca.pem, the ca of tls"):
        files.make_credentials()
    assert not files.has_changed()
    ca.write_text("one")
    assert files.has_changed()
    files.make_credentials()
    assert not files.has_changed()
    ca.write_text("other")
    assert files.has_changed()


def test_a_key_with_a_password_is_refused() -> None:
    key = b"-----BEGIN ENCRYPTED PRIVATE KEY-----"
    with pytest.raises(muster.MusterError, match="takes keys without one"):
        TlsFiles(muster.Tls(certificate=b"c", key=key)).make_credentials()
