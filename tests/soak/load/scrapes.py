"""The door over HTTP: scrapes, probes, and requests that are begun and left."""

from __future__ import annotations

import asyncio

READ_MAX = 1 << 24


async def get(address: str, path: str, accept: str = "") -> str:
    """The body of an answer, on a connection of its own."""
    host, _, port = address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n"
        "Connection: close\r\n\r\n".encode()
    )
    answer = await reader.read(READ_MAX)
    while more := await reader.read(READ_MAX):
        answer += more
    writer.close()
    return answer.partition(b"\r\n\r\n")[2].decode(errors="replace")


def count_series(metrics: str) -> int:
    return sum(1 for line in metrics.splitlines() if " " in line and not line.startswith("#"))


def read_metric(metrics: str, name: str) -> float:
    """The value of a metric without labels."""
    for line in metrics.splitlines():
        if line.startswith(f"{name} "):
            return float(line.split()[1])
    raise KeyError(name)


async def scrapes(address: str, name: str) -> None:
    """A scrape in each format, probes, and what is not there."""
    await get(address, "/metrics")
    await get(address, "/metrics", "application/openmetrics-text; version=1.0.0")
    await get(address, "/readyz")
    await get(address, f"/{name}")
    host, _, port = address.rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /metrics HTT")
    await writer.drain()
    writer.close()
