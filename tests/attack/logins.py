"""Attacks on authentication: tokens without end, and guessed passwords."""

from __future__ import annotations

import asyncio
import itertools
import ssl
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

from tests.attack.lines import GONE, Line
from tests.attack.secure_client import (
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    make_context,
    make_plain_token,
)
from tests.attack.secured import USER
from tests.attack.stand import Attack, Target
from tests.interop.security import PLAIN, SCRAM_256, Security
from tests.support.wire.frames import make_frame

TOKEN_BYTES = 100 << 20
TOKEN_SENT_MAX = 16 << 20
"""What may be on the way when the server hangs up: the buffers of both sockets, and of TLS."""
GUESSERS = 100
_AUTHENTICATION_FAILED = 58
_SOURCE = "127.0.0.9"


async def log_in(line: Line, security: Security) -> None:
    """As a valid user. Raises ``PermissionError``."""
    await line.ask(SASL_HANDSHAKE, 1, mechanism=security.mechanism)
    token = make_plain_token(security.user, security.password)
    answer = await line.ask(SASL_AUTHENTICATE, 2, auth_bytes=token)
    if answer.error_code:
        raise PermissionError(f"the login is answered {answer.error_code}")


def send_tokens(target: Target, strength: int) -> None:
    """Tokens of 100 MB, which are declared, and then sent until the server hangs up."""
    asyncio.run(pour_tokens(target, 5 * strength))


async def pour_tokens(target: Target, count: int) -> None:
    context = make_context(target.security)
    most = 0
    for number in range(count):
        for begin in (_begin_token, _begin_raw_token, _begin_frame):
            line = await Line.open(target.kafka, context, _SOURCE)
            try:
                await begin(line)
                line.sent = 0
                await line.send_much(TOKEN_BYTES)
                await line.wait_until_closed()
            except GONE:
                pass
            most = max(most, line.sent)
            await line.close()
            if most > TOKEN_SENT_MAX:
                raise AssertionError(f"{number}: {begin.__name__}: {most >> 20} MB are taken")
    target.notes.append(f"{3 * count} tokens, at most {most >> 10} KB taken of one")


async def _begin_token(line: Line) -> None:
    """SaslAuthenticate, whose frame and whose token are as long as they say."""
    await line.ask(SASL_HANDSHAKE, 1, mechanism=PLAIN)
    await line.send(_make_head(SASL_AUTHENTICATE, TOKEN_BYTES))


async def _begin_raw_token(line: Line) -> None:
    """After a SaslHandshake of version 0 tokens come without a header."""
    await line.ask(SASL_HANDSHAKE, 0, mechanism=PLAIN)
    await line.send(TOKEN_BYTES.to_bytes(4, "big"))


async def _begin_frame(line: Line) -> None:
    """The first frame of all."""
    await line.send(_make_head(SASL_AUTHENTICATE, TOKEN_BYTES))


def _make_head(key: int, token_bytes: int) -> bytes:
    """A request of version 1 up to its token: null for a client id, and the token's length."""
    body = key.to_bytes(2, "big") + b"\0\1" + b"\0\0\0\1" + b"\xff\xff"
    body += token_bytes.to_bytes(4, "big")
    return (len(body) + token_bytes).to_bytes(4, "big") + body


def guess_passwords(target: Target, strength: int) -> None:
    """Wrong passwords by PLAIN and by SCRAM, of users that there are and that there are not."""
    asyncio.run(guess_for(target, GUESSERS, 5.0 * strength))


async def guess_for(target: Target, guessers: int, seconds: float) -> None:
    context = make_context(target.security)
    answers: Counter[str] = Counter()
    end = time.monotonic() + seconds
    guesses = (_guess_plain, _guess_scram)
    async with asyncio.TaskGroup() as group:
        for number in range(guessers):
            user = USER if number // 2 % 2 else f"nobody-{number}"
            source = f"127.0.0.{10 + number % 50}"
            guess = partial(_guess_once, target, context, guesses[number % 2], user, source)
            group.create_task(_count(guess, end, answers))
    target.notes.append(", ".join(f"{answer}: {count}" for answer, count in answers.items()))
    if set(answers) - {"refused", "closed"}:
        raise AssertionError(f"a guess is answered {dict(answers)}")
    if not answers["refused"]:
        raise AssertionError("no guess was answered")


async def _count(guess: Callable[[], Awaitable[str]], end: float, answers: Counter[str]) -> None:
    while time.monotonic() < end:
        answer = await guess()
        answers[answer] += 1
        if answer == "closed":
            await asyncio.sleep(0.05)


async def _guess_once(
    target: Target,
    context: ssl.SSLContext,
    guess: Callable[[Line, str], Awaitable[int]],
    user: str,
    source: str,
) -> str:
    """How one guess over a connection of its own is answered."""
    try:
        line = await Line.open(target.kafka, context, source)
    except OSError:
        return "closed"
    try:
        code = await guess(line, user)
    except GONE:
        return "closed"
    finally:
        await line.close()
    return "refused" if code == _AUTHENTICATION_FAILED else f"code {code}"


async def _guess_plain(line: Line, user: str) -> int:
    await line.ask(SASL_HANDSHAKE, 1, mechanism=PLAIN)
    token = make_plain_token(user, "not the password")
    return int((await line.ask(SASL_AUTHENTICATE, 2, auth_bytes=token)).error_code)


async def _guess_scram(line: Line, user: str) -> int:
    """A proof made up: who guesses does not compute 4,096 hashes for it."""
    await line.ask(SASL_HANDSHAKE, 1, mechanism=SCRAM_256)
    first = f"n,,n={user},r=abcdefghijklmnopqrstuvwx".encode()
    answer = await line.ask(SASL_AUTHENTICATE, 2, auth_bytes=first)
    if answer.error_code:
        return int(answer.error_code)
    nonce = answer.auth_bytes.partition(b"r=")[2].partition(b",")[0]
    last = b"c=biws,r=" + nonce + b",p=" + b"A" * 43 + b"="
    return int((await line.ask(SASL_AUTHENTICATE, 2, auth_bytes=last)).error_code)


def ask_before_login(target: Target, strength: int) -> None:
    """Requests of every kind by clients that have not said who they are."""
    asyncio.run(ask_unknown(target, 200 * strength))


async def ask_unknown(target: Target, count: int) -> None:
    context = make_context(target.security)
    frames = [make_frame(3, 12, topics=None), make_frame(32, 4, resources=()), make_frame(16, 5)]
    answered = 0
    for number, frame in enumerate(itertools.islice(itertools.cycle(frames), count)):
        line = await Line.open(target.kafka, context, _SOURCE)
        try:
            await line.send(frame * 100)
            await line.receive()
            answered += 1
        except GONE:
            pass
        await line.close()
        if answered:
            raise AssertionError(f"{number}: a request before the login is answered")


ATTACKS = tuple(
    Attack(name, run, peak_bytes=48 << 20, protocol="SASL_SSL", is_quick=False)
    for name, run in (
        ("SASL: tokens of 100 MB", send_tokens),
        ("SASL: wrong passwords", guess_passwords),
        ("SASL: requests before the login", ask_before_login),
    )
)
