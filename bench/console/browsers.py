"""Browsers on plain sockets: they cost this process as little as they can."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from urllib.parse import quote

READ_BYTES = 1 << 16


class Refused(RuntimeError):
    """The server answered with another status than 200."""


async def get(host: str, port: int, path: str) -> tuple[bytes, float]:
    """The body of a page, and how long it took in ms."""
    began_s = time.perf_counter()
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(_make_head(host, port, path, "close"))
    data = await reader.read(-1)
    took_ms = (time.perf_counter() - began_s) * 1_000
    writer.close()
    head, _, body = data.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise Refused(head.decode("latin-1"))
    return body, took_ms


async def drain_page(host: str, port: int, path: str) -> tuple[int, float]:
    """The size of a page that may be large, and how long it took in ms; nothing of it is kept."""
    began_s = time.perf_counter()
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(_make_head(host, port, path, "close"))
    head = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n", 1)[0]:
        raise Refused(head.decode("latin-1"))
    size = 0
    while data := await reader.read(READ_BYTES):
        size += len(data)
    writer.close()
    return size, (time.perf_counter() - began_s) * 1_000


async def find_stream(host: str, port: int, group_id: str) -> str:
    """Where the page of a group gets its events from."""
    page, _ = await get(host, port, f"/groups/{quote(group_id, safe='')}")
    found = re.search(rb'data-live="([^"]*)"', page)
    if found is None:
        raise Refused("the page has no events")
    return found[1].decode()


@asynccontextmanager
async def following(host: str, port: int, path: str) -> AsyncIterator[asyncio.StreamReader]:
    """An open stream of events."""
    reader, writer = await asyncio.open_connection(host, port, limit=1 << 24)
    try:
        writer.write(_make_head(host, port, path, "keep-alive"))
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head.split(b"\r\n", 1)[0]:
            raise Refused(head.decode("latin-1"))
        yield reader
    finally:
        writer.close()


async def wait_for(reader: asyncio.StreamReader, text: bytes) -> None:
    """Read until the text has come."""
    seen = b""
    while text not in seen:
        data = await reader.read(READ_BYTES)
        if not data:
            raise Refused("the stream ended")
        seen = seen[-len(text) :] + data


async def drain(reader: asyncio.StreamReader) -> None:
    """Read and forget, until this is cancelled."""
    while await reader.read(READ_BYTES):
        pass


async def probe(host: str, port: int, waits_ms: list[float]) -> None:
    """Ask `/livez` over one connection all the time: how long another client waits."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        while True:
            began_s = time.perf_counter()
            writer.write(_make_head(host, port, "/livez", "keep-alive"))
            await reader.readuntil(b"ok\n")
            waits_ms.append((time.perf_counter() - began_s) * 1_000)
            await asyncio.sleep(0.002)
    finally:
        writer.close()


async def watch(place: tuple[str, int], work: Awaitable[None]) -> list[float]:
    """How long another client waits, in ms, while something is done."""
    waits_ms: list[float] = []
    probing = asyncio.create_task(probe(*place, waits_ms))
    try:
        await work
    finally:
        probing.cancel()
        with suppress(asyncio.CancelledError):
            await probing
    return waits_ms


def _make_head(host: str, port: int, path: str, connection: str) -> bytes:
    lines = (f"GET {path} HTTP/1.1", f"Host: {host}:{port}", f"Connection: {connection}", "", "")
    return "\r\n".join(lines).encode()
