"""The keys of tokens: read again when they may differ, and kept while they cannot be read."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cli.serve.doors import jwks_keys
from cli.serve.doors.jwks_keys import JwksKeys, read_content
from tests.support.security.tokens import jwk, jwks, rsa_key

ONE = jwks(jwk(rsa_key()))
TWO = jwks(jwk(rsa_key()), jwk(rsa_key(1), "k2"))


class Issuer(ThreadingHTTPServer):
    """Serves what it is told, and counts."""

    daemon_threads = True
    content = ONE
    status = 200
    headers: tuple[tuple[str, str], ...] = ()
    asked = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/jwks"


class Answers(BaseHTTPRequestHandler):
    server: Issuer

    def do_GET(self) -> None:
        self.server.asked += 1
        self.send_response(self.server.status)
        for header in self.server.headers:
            self.send_header(*header)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(self.server.content)

    def log_message(self, *arguments: object) -> None: ...


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    server = Issuer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def make(url: str, refresh_ms: int = 3_600_000) -> JwksKeys:
    return JwksKeys(url, refresh_ms, 10, 20)


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110 - the keys tell nobody
            await asyncio.sleep(0.005)


async def refresh(keys: JwksKeys) -> None:
    done = asyncio.Event()
    keys.refresh(done.set)
    async with asyncio.timeout(30):
        await done.wait()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwks_keys, "LOOK_AGAIN_S", 0.02)


async def test_a_changed_file_is_noticed(tmp_path: Path, often: None) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(ONE)
    keys = make(f"file:{file}")
    await keys.start()
    assert list(keys.keys.by_id) == ["k1"]
    fresh = tmp_path / "fresh.json"
    fresh.write_bytes(TWO)
    os.replace(fresh, file)
    await until(lambda: list(keys.keys.by_id) == ["k1", "k2"])
    file.write_bytes(b"broken")
    before = keys.keys
    await refresh(keys)
    assert keys.keys is before
    file.unlink()
    await refresh(keys)
    assert keys.keys is before
    keys.stop()


async def test_an_unknown_key_brings_newer_ones_from_a_url(issuer: Issuer, often: None) -> None:
    keys = make(issuer.url)
    await keys.start()
    issuer.content = TWO
    await asyncio.sleep(0.03)
    await refresh(keys)
    assert "k2" in keys.keys.by_id
    keys.stop()


async def test_unknown_keys_are_looked_for_seldom(issuer: Issuer) -> None:
    keys = make(issuer.url)
    await keys.start()
    for _ in range(100):
        await refresh(keys)
    assert issuer.asked == 1
    keys.stop()


async def test_many_wait_for_one_look(issuer: Issuer, often: None) -> None:
    keys = make(issuer.url)
    await keys.start()
    await asyncio.sleep(0.03)
    ended: list[int] = []
    for number in range(1_500):
        keys.refresh(lambda number=number: ended.append(number))
    assert len(ended) == 500
    await until(lambda: len(ended) == 1_500)
    assert issuer.asked == 2
    keys.stop()


async def test_keys_are_read_again_every_so_often(issuer: Issuer) -> None:
    keys = make(issuer.url, refresh_ms=20)
    await keys.start()
    issuer.content = TWO
    await until(lambda: "k2" in keys.keys.by_id)
    keys.stop()


async def test_a_url_that_cannot_be_read_is_tried_again(issuer: Issuer) -> None:
    issuer.status = 500
    keys = make(issuer.url)
    await keys.start()
    assert keys.keys.by_id == {}
    issuer.status = 200
    await until(lambda: "k1" in keys.keys.by_id)
    keys.stop()


@pytest.mark.parametrize("status", [301, 302, 404, 500])
def test_only_an_answer_is_an_answer(issuer: Issuer, tmp_path: Path, status: int) -> None:
    """A redirection could lead to another host, or to a file."""
    issuer.status, issuer.headers = status, (("Location", issuer.url),)
    with pytest.raises(ValueError, match=str(status)):
        read_content(issuer.url)
    assert issuer.asked == 1


def test_no_more_is_read_than_may_be(issuer: Issuer) -> None:
    issuer.content = b" " * (8 * 1024 * 1024)
    assert len(read_content(issuer.url)) < 2 * 1024 * 1024


def test_what_does_not_answer_is_said(tmp_path: Path) -> None:
    for url in ("http://127.0.0.1:1/x", f"file:{tmp_path}/none", f"file:{tmp_path}"):
        with pytest.raises(ValueError, match="cannot be read"):
            read_content(url)


@pytest.mark.parametrize(
    "url", ["", "x", "/etc/keys", "file:keys", "file://host/keys", "ftp://h/k", "data:,x", "http:"]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="file:/PATH"):
        make(url)


async def test_a_file_that_is_written_again_within_one_tick_is_read(
    often: None, tmp_path: Path
) -> None:
    """Its time says nothing then: it was read half, and the rest came before the clock went on."""
    file = tmp_path / "jwks.json"
    file.write_bytes(ONE)
    written = file.stat()
    keys = make(f"file:{file}")
    await keys.start()
    assert keys.keys.find("k2") is None
    file.write_bytes(TWO)
    os.utime(file, ns=(written.st_atime_ns, written.st_mtime_ns))
    await until(lambda: keys.keys.find("k2") is not None)
    keys.stop()


@pytest.mark.parametrize("url", ["https://user:secret@host/keys", "http://user@host/keys"])
def test_a_url_with_a_password_is_refused_without_saying_it(url: str) -> None:
    with pytest.raises(ValueError, match="leave out the user") as caught:
        make(url)
    assert "secret" not in str(caught.value)
