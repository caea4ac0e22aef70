"""Attacks on gRPC whose clients show passwords over TLS, and on HTTP with TLS."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import ssl
import time
from collections import Counter
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from muster.v1 import group_pb2, group_pb2_grpc
from tests.attack.handshakes import half_open_at, leave_halfway_at, send_slowly_to
from tests.attack.lines import GONE, Line, make_client_hello
from tests.attack.secure_client import connect_grpc, make_basic, make_context, make_metadata
from tests.attack.secured import NEWCOMERS, USER
from tests.attack.stand import Attack, Target
from tests.interop.security import Security
from tests.support.service.raw_http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    SETTINGS,
    frame,
    header_block,
)

GUESSERS = 50
CALLS = 8
"""Of one connection at a time: so many may wait to be refused."""
SESSIONS = 1_500
_OF_CONNECTION = 100
_SLOW = 400
_FIRST_SOURCE = 10
_EMPTY_MESSAGE = bytes(5)
_CONTINUATION = 9
_HEAD_BYTES = 100 << 20
_METADATA = (6_000, 60_000, 1 << 20, 4 << 20)
_OPTIONS = (("grpc.use_local_subchannel_pool", 1),)


def _security(target: Target) -> Security:
    assert target.doors is not None
    return target.doors


def _hello(target: Target) -> bytes:
    return make_client_hello(make_context(_security(target)))


def _http2_context(target: Target) -> ssl.SSLContext:
    context = make_context(_security(target))
    context.set_alpn_protocols(["h2"])
    return context


def _open_channel(address: str, security: Security) -> grpc.aio.Channel:
    trusted = grpc.ssl_channel_credentials(Path(security.ca).read_bytes())
    return grpc.aio.secure_channel(address, trusted, _OPTIONS)


# ------------------------------------------------------------------------------- handshakes


def half_open(target: Target, strength: int) -> None:
    """Handshakes with gRPC, not begun or half begun."""
    half_open_at(target, target.grpc, _hello(target), strength)


def leave_halfway(target: Target, strength: int) -> None:
    """Handshakes with gRPC, for which it has computed."""
    leave_halfway_at(target, target.grpc, _hello(target), 4 * strength)


def send_slowly(target: Target, strength: int) -> None:
    """Handshakes with gRPC of a byte a second."""
    send_slowly_to(target, target.grpc, _hello(target), _SLOW * strength)


def half_open_http(target: Target, strength: int) -> None:
    """Handshakes with HTTP, not begun or half begun."""
    half_open_at(target, target.http, _hello(target), strength)


def leave_halfway_http(target: Target, strength: int) -> None:
    """Handshakes with HTTP, for which it has computed."""
    leave_halfway_at(target, target.http, _hello(target), 4 * strength)


# -------------------------------------------------------------------------------- passwords


def guess_passwords(target: Target, strength: int) -> None:
    """Wrong passwords from many addresses; meanwhile users log in for the first time."""
    asyncio.run(guess_for(target, GUESSERS, 5.0 * strength, len(NEWCOMERS)))


async def guess_for(target: Target, guessers: int, seconds: float, newcomers: int) -> None:
    """Raises ``AssertionError`` if a guess is taken, or a newcomer has to wait."""
    end = time.monotonic() + seconds
    context = _http2_context(target)
    counts: Counter[str] = Counter()
    async with asyncio.TaskGroup() as group:
        for number in range(guessers):
            user = USER if number % 2 else f"nobody-{number}"
            source = f"127.0.0.{_FIRST_SOURCE + number}"
            group.create_task(_guess(target, context, source, user, end, counts))
        await asyncio.sleep(min(1.0, seconds / 2))
        waits = await asyncio.to_thread(_let_in, target, newcomers)
    target.notes.append(
        f"{counts['answered']} guesses answered, {counts['closed']} connections closed; "
        f"first logins in {max(waits):.2f} s"
    )
    if not counts["answered"]:
        raise AssertionError("no guess was answered")
    if max(waits) > target.longest_wait_s:
        raise AssertionError(f"a first login took {max(waits):.2f} s")
    wrong = Security(ca=_security(target).ca, user=USER, password="wrong")
    code = await asyncio.to_thread(_commit, target, wrong)
    if code is not grpc.StatusCode.UNAUTHENTICATED:
        raise AssertionError(f"a wrong password is answered {code}")


async def _guess(
    target: Target,
    context: ssl.SSLContext,
    source: str,
    user: str,
    end: float,
    counts: Counter[str],
) -> None:
    for number in itertools.count():
        if time.monotonic() > end:
            return
        try:
            line = await Line.open(target.grpc, context, source)
        except OSError:
            counts["closed"] += 1
            await asyncio.sleep(0.05)
            continue
        try:
            await line.send(PREFACE + frame(SETTINGS, 0, 0))
            for first in range(5):
                calls = [
                    _make_call(1 + 2 * (first * CALLS + each), user, f"guess {number}-{each}")
                    for each in range(CALLS)
                ]
                await line.send(b"".join(calls))
                await _read_ends(line, CALLS)
                counts["answered"] += CALLS
        except GONE:
            counts["closed"] += 1
        finally:
            await line.close()


def _make_call(stream: int, user: str, password: str) -> bytes:
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    head = header_block(authorization=f"Basic {pair}")
    return frame(HEADERS, END_HEADERS, stream, head) + frame(
        DATA, END_STREAM, stream, _EMPTY_MESSAGE
    )


async def _read_ends(line: Line, count: int) -> None:
    """Read until so many calls have ended."""
    while count:
        head = await line.receive_bytes(9)
        await line.receive_bytes(int.from_bytes(head[:3], "big"))
        count -= head[3] == HEADERS and bool(head[4] & END_STREAM)


def _let_in(target: Target, count: int) -> list[float]:
    """How long the first call takes of each of so many users."""
    waits = [0.0]
    for user, password in itertools.islice(NEWCOMERS.items(), count):
        began = time.monotonic()
        code = _commit(target, Security(ca=_security(target).ca, user=user, password=password))
        waits.append(time.monotonic() - began)
        if code is not grpc.StatusCode.OK:
            raise AssertionError(f"a right password is answered {code}")
    return waits


def _commit(target: Target, security: Security) -> grpc.StatusCode:
    host, port = target.grpc
    request = group_pb2.CommitOffsetsRequest(group_id="newcomers")
    with connect_grpc(f"{host}:{port}", security) as channel:
        stub = group_pb2_grpc.GroupServiceStub(channel)
        try:
            stub.CommitOffsets(request, timeout=30, metadata=make_metadata(security))
        except grpc.RpcError as error:
            code = error.code()
            # What is asked for is refused for its content, not for who asks.
            return code if code is not grpc.StatusCode.INVALID_ARGUMENT else grpc.StatusCode.OK
    return grpc.StatusCode.OK


# --------------------------------------------------------------------------------- metadata


def send_metadata(target: Target, strength: int) -> None:
    """Credentials and heads of megabytes, by clients that nobody knows."""
    asyncio.run(pour_metadata(target, 10 * strength, strength))


async def pour_metadata(target: Target, count: int, heads: int) -> None:
    """Of a head without end gRPC keeps little, but takes it as long as it comes."""
    codes: Counter[str] = Counter()
    host, port = target.grpc
    async with _open_channel(f"{host}:{port}", _security(target)) as channel:
        for size in _METADATA:
            for _ in range(count):
                codes[await _call_with(channel, size)] += 1
    most = 0
    for _ in range(heads):
        most = max(most, await _pour_head(target))
    target.notes.append(f"{dict(codes)}, {most >> 20} MB of an endless head taken")
    if codes["OK"]:
        raise AssertionError("a call without a right password is served")


async def _call_with(channel: grpc.aio.Channel, size: int) -> str:
    metadata = (("authorization", "Basic " + "A" * size),)
    call = channel.unary_unary("/muster.v1.GroupService/CommitOffsets")
    try:
        await call(b"", timeout=20, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        return error.code().name
    return "OK"


async def _pour_head(target: Target) -> int:
    """How much is taken of a head that does not end."""
    line = await Line.open(target.grpc, _http2_context(target), "127.0.0.9")
    more = frame(_CONTINUATION, 0, 1, b"\x00\x01a\x01b" * 2_000)
    try:
        await line.send(PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, header_block()))
        async with asyncio.timeout(5):
            while line.sent < _HEAD_BYTES:
                await line.send(more * 20)
    except (*GONE, TimeoutError):
        pass
    finally:
        await line.close()
    return line.sent


# --------------------------------------------------------------------------------- sessions


def open_sessions(target: Target, strength: int) -> None:
    """Sessions of one user, each with a member, as many as a connection may have on each.

    One connection after the other: gRPC takes calls in the order in which they come, so whoever
    comes with a burst of sessions waits for all of them, half a millisecond each.
    """
    asyncio.run(hold_sessions(target, SESSIONS * strength))


async def hold_sessions(target: Target, count: int, held_s: float = 1.0) -> None:
    host, port = target.grpc
    security = _security(target)
    metadata = (("authorization", make_basic(security)),)
    counts: Counter[str] = Counter()
    async with contextlib.AsyncExitStack() as stack:
        calls: list[Any] = []
        for first in range(0, count, _OF_CONNECTION):
            channel = _open_channel(f"{host}:{port}", security)
            await stack.enter_async_context(channel)
            session = group_pb2_grpc.GroupServiceStub(channel).Session
            opened = [session(metadata=metadata) for _ in range(_OF_CONNECTION)]
            joins = (_join(first + number, call) for number, call in enumerate(opened))
            counts.update(await asyncio.gather(*joins))
            calls += opened
        await asyncio.sleep(held_s)
    target.notes.append(f"sessions: {dict(counts)}")
    if not counts["served"]:
        raise AssertionError("no session was served")


async def _join(number: int, call: Any) -> str:
    action = group_pb2.MemberAction(group_id=f"s-{number % 20}", member_id=f"m-{number}")
    action.join.join_id = 1
    action.join.rebalance_timeout_ms = 60_000
    action.join.subscription.subscribed_topic_names.append("orders")
    try:
        async with asyncio.timeout(20):
            await call.write(group_pb2.SessionRequest(sequence=1, actions=[action]))
            await call.read()
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name}: {error.details()}"
    except TimeoutError:
        return "waits"
    return "served"


# ---------------------------------------------------------------------------------- in brief


def attack_briefly(target: Target, strength: int) -> None:
    """One after the other, each for a moment."""
    hello = _hello(target)
    for address in (target.grpc, target.http):
        leave_halfway_at(target, address, hello, 0.25 * strength)
    asyncio.run(_come_in_badly(target, strength))


async def _come_in_badly(target: Target, strength: int) -> None:
    await guess_for(target, GUESSERS // 5, 0.5 * strength, 2)
    await pour_metadata(target, strength, 0)
    await hold_sessions(target, 100 * strength, 0.1)


ATTACKS = (
    *(
        Attack(name, run, peak_bytes=peak_bytes, secures_doors=True, is_quick=False)
        for name, run, peak_bytes in (
            ("gRPC TLS: half-open handshakes", half_open, 320 << 20),
            ("gRPC TLS: handshakes left halfway", leave_halfway, 320 << 20),
            ("gRPC TLS: handshakes of a byte a second", send_slowly, 128 << 20),
            ("gRPC: wrong passwords", guess_passwords, 96 << 20),
            ("gRPC: metadata without end", send_metadata, 256 << 20),
            ("gRPC: thousands of sessions", open_sessions, 256 << 20),
            ("HTTP TLS: half-open handshakes", half_open_http, 96 << 20),
            ("HTTP TLS: handshakes left halfway", leave_halfway_http, 96 << 20),
        )
    ),
    Attack("gRPC and HTTP with TLS, briefly", attack_briefly, 256 << 20, secures_doors=True),
)
