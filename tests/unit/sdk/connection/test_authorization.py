"""When tokens are asked for, and when they are replaced."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

import muster
from muster.connection import authorization
from muster.connection.authorization import Authorization, Metadata, TokenUnavailable
from muster.credentials import Credentials
from tests.support.waiting import until


@asynccontextmanager
async def authorizing(
    credentials: Credentials, on_renewed: Callable[[], None] = lambda: None
) -> AsyncIterator[Authorization]:
    made = Authorization(credentials, on_renewed)
    try:
        yield made
    finally:
        made.stop()


def carried(token: str) -> Metadata:
    return (("authorization", f"Bearer {token}"),)


class Issuer:
    """Numbers its tokens."""

    def __init__(self, lifetime_s: float | None) -> None:
        self.issued = 0
        self.failures = 0
        self._lifetime_s = lifetime_s

    async def issue(self) -> muster.Token:
        if self.failures:
            self.failures -= 1
            raise OSError("planted")
        self.issued += 1
        end = None if self._lifetime_s is None else time.time() + self._lifetime_s
        return muster.Token(f"t{self.issued}", end)


async def test_a_password_is_sent_as_it_is() -> None:
    async with authorizing(muster.Basic("alice", "se:cret")) as found:
        pair = base64.b64encode(b"alice:se:cret").decode()
        assert await found.find() == (("authorization", f"Basic {pair}"),)
        assert not found.note_refused(found.present, was_valid=False)


async def test_many_calls_ask_for_one_token() -> None:
    issuer = Issuer(60)
    async with authorizing(muster.Bearer(issuer.issue)) as found:
        assert not found.present
        assert await asyncio.gather(*(found.find() for _ in range(10))) == [carried("t1")] * 10
    assert issuer.issued == 1


async def test_a_function_that_blocks_runs_in_a_thread() -> None:
    threads: list[threading.Thread] = []

    def issue() -> str:
        threads.append(threading.current_thread())
        return "made.in-a.thread"

    async with authorizing(muster.Bearer(issue)) as found:
        assert await found.find() == carried("made.in-a.thread")
    assert threads[0] is not threading.main_thread()


async def test_a_function_that_hangs_is_not_called_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authorization, "_SOURCE_TIMEOUT_S", 0.02)
    going_on = threading.Event()
    calls: list[str] = []

    def issue() -> str:
        calls.append("called")
        going_on.wait(30)
        return "made.in-a.thread"

    async with authorizing(muster.Bearer(issue)) as found:
        for _ in range(3):
            with pytest.raises(TokenUnavailable):
                await found.find()
        assert calls == ["called"]
        monkeypatch.setattr(authorization, "_SOURCE_TIMEOUT_S", 30)
        going_on.set()
        assert await found.find() == carried("made.in-a.thread")
        assert calls == ["called"]


@pytest.mark.parametrize("claims", ['{"exp": 1' + "0" * 400 + "}", "[" * 100_000])
async def test_claims_that_cannot_be_read_are_none(claims: str) -> None:
    token = f"h.{base64.urlsafe_b64encode(claims.encode()).decode().rstrip('=')}.s"
    async with authorizing(muster.Bearer(lambda: token)) as found:
        assert await found.find() == carried(token)


async def test_a_token_is_replaced_before_it_ends() -> None:
    issuer = Issuer(0.5)
    renewed: list[float] = []
    async with authorizing(
        muster.Bearer(issuer.issue), lambda: renewed.append(time.monotonic())
    ) as found:
        began = time.monotonic()
        await found.find()
        await until(lambda: renewed, "the token is replaced")
        assert found.present == carried("t2")
    assert renewed[0] - began >= 0.39


async def test_a_jwt_says_itself_when_it_ends() -> None:
    def encode(claims: dict[str, object]) -> str:
        return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")

    issued = 0

    def issue() -> str:
        nonlocal issued
        issued += 1
        now = time.time()
        claims: dict[str, object] = {"iat": now, "exp": now + 0.5, "sub": "alice"}
        return f"{encode({'alg': 'RS256'})}.{encode(claims)}.{issued}"

    async with authorizing(muster.Bearer(issue)) as found:
        await found.find()
        await until(lambda: issued > 1, "the token is replaced")


@pytest.mark.parametrize(
    "token", ["opaque", "a.b.c", "a.e30.c", "a.W10.c", "a.eyJleHAiOiAibm8ifQ.c"]
)
async def test_a_token_that_says_nothing_of_its_end_is_kept(token: str) -> None:
    calls = 0

    def issue() -> str:
        nonlocal calls
        calls += 1
        return token

    async with authorizing(muster.Bearer(issue)) as found:
        for _ in range(3):
            assert await found.find() == carried(token)
    assert calls == 1


async def test_a_failure_keeps_the_present_token(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("muster.connection.authorization._RETRY_MIN_S", 0.05)
    issuer = Issuer(2.0)
    async with authorizing(muster.Bearer(issuer.issue)) as found:
        await found.find()
        issuer.failures = 3
        await until(lambda: issuer.failures < 3, "replacing it has failed")
        assert await found.find() == carried("t1")
        await until(lambda: issuer.issued == 2, "it is replaced in the end")
    assert "token_not_renewed cause=OSError" in caplog.text
    assert "planted" not in caplog.text


async def test_without_a_token_calls_fail() -> None:
    issuer = Issuer(60)
    issuer.failures = 1
    async with authorizing(muster.Bearer(issuer.issue)) as found:
        with pytest.raises(TokenUnavailable, match="OSError"):
            await found.find()
        assert await found.find() == carried("t1")


async def test_a_refused_token_is_replaced_but_not_for_ever() -> None:
    issuer = Issuer(60)
    async with authorizing(muster.Bearer(issuer.issue)) as found:
        for number in range(1, 4):
            shown = await found.find()
            assert shown == carried(f"t{number}")
            assert found.note_refused(shown, was_valid=False) == (number < 3)


async def test_a_token_that_has_served_counts_as_no_refusal() -> None:
    issuer = Issuer(60)
    async with authorizing(muster.Bearer(issuer.issue)) as found:
        for _ in range(10):
            assert found.note_refused(await found.find(), was_valid=True)


async def test_the_refusal_of_an_older_token_leaves_the_present_one() -> None:
    issuer = Issuer(60)
    async with authorizing(muster.Bearer(issuer.issue)) as found:
        old = await found.find()
        found.note_refused(old, was_valid=False)
        newer = await found.find()
        assert found.note_refused(old, was_valid=False)
        assert found.present == newer


async def test_many_calls_with_one_refused_token_count_once() -> None:
    issuer = Issuer(60)
    async with authorizing(muster.Bearer(issuer.issue)) as found:
        shown = await found.find()
        assert all(found.note_refused(shown, was_valid=False) for _ in range(10))


async def test_a_token_that_has_ended_already_is_not_asked_for_again_and_again() -> None:
    """The clocks differ, or the issuer is broken: the server decides."""
    issuer = Issuer(-5)
    async with authorizing(muster.Bearer(issuer.issue)) as found:
        for _ in range(5):
            await found.find()
        await asyncio.sleep(0.2)
        assert issuer.issued == 1


async def test_a_token_in_text_is_not_replaced() -> None:
    async with authorizing(muster.Bearer("fixed")) as found:
        assert not found.note_refused(await found.find(), was_valid=False)


async def test_what_is_no_token_is_refused() -> None:
    async with authorizing(muster.Bearer(lambda: 5)) as found:  # type: ignore[arg-type,return-value]
        with pytest.raises(TokenUnavailable, match=r"not a muster\.Token"):
            await found.find()
