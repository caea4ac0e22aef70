"""`muster load` on a real server: members of every protocol for a moment, and through TLS."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.groups import CHECKOUT
from tests.server import MusterServer

WITHIN_S = 90
SHORT = ("--ramp", "100ms", "--duration", "500ms", "--timeout", "20s", "--processes", "1",
         "--json", "--quiet")  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MusterServer]:
    settings = {"group.initial.rebalance.delay.ms": 0}
    folder = tmp_path_factory.mktemp("load")
    with MusterServer(folder / "data", settings=settings) as running:
        yield running


async def run(*arguments: str) -> dict[str, Any]:
    """The result of a load test that succeeds."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cli", "load", *arguments, *SHORT,
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT}/sdk"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(WITHIN_S):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    result: dict[str, Any] = json.loads(output)
    return result


async def test_members_of_the_consumer_protocol(server: MusterServer) -> None:
    result = await run(
        "--bootstrap-server", server.kafka, "--groups", "4", "--members", "20",
        "--partitions", "30", "--churn", "8", "--rate", "200", "--in-flight", "2",
    )  # fmt: skip
    assert result["errors"] == {}
    # A busy machine may fall behind the rate, but nobody may exceed it.
    assert 0 < result["requests"] <= 110
    assert result["latency_ms"]["p50"] >= result["service_ms"]["p50"] > 0
    assert result["convergences"] >= 1
    assert await find_groups(server) == []


async def test_commits_of_classic_members(server: MusterServer) -> None:
    result = await run(
        "--bootstrap-server", server.kafka, "--groups", "4", "--members", "8",
        "--protocol", "classic", "--workload", "commits", "--commit-partitions", "5",
    )  # fmt: skip
    assert result["errors"] == {}
    assert result["requests"] > 0
    # Every member had its partitions before the load began.
    assert result["convergences"] == 8
    assert await find_groups(server) == []


async def test_commits_of_sessions(server: MusterServer) -> None:
    result = await run(
        "--server", server.grpc, "--groups", "4", "--members", "20", "--topic", "of-sessions",
        "--workload", "commits", "--rate", "100", "--churn", "8",
    )  # fmt: skip
    assert 0 < result["requests"] <= 60
    assert result["convergences"] >= 1
    assert await find_groups(server) == []


async def find_groups(server: MusterServer) -> list[str]:
    """The groups of load tests that are left; there is an API for that, and the CLI uses it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cli", "group", "list", "--server", server.grpc, "-o", "jsonl",
        cwd=CHECKOUT, stdout=subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    names = [json.loads(line)["group_id"] for line in output.decode().splitlines()]
    return [name for name in names if name.startswith("muster-load-")]


@asynccontextmanager
async def tls_in_front_of(server: MusterServer, folder: Path) -> AsyncIterator[str]:
    """A proxy that ends TLS and wants a client's certificate; its address."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "cert.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection(*server.address("kafka"))
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as proxy:
        host, port = proxy.sockets[0].getsockname()
        yield f"{host}:{port}"
        proxy.close()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
async def test_through_tls(server: MusterServer, tmp_path: Path) -> None:
    subprocess.run(  # noqa: ASYNC221
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", "key.pem", "-out", "cert.pem"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    files = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    async with tls_in_front_of(server, tmp_path) as address:
        result = await run(
            "--bootstrap-server", address, "--tls", "--tls-ca", str(tmp_path / "cert.pem"), *files,
            "--workload", "commits", "--groups", "2", "--members", "0", "--rate", "100",
        )  # fmt: skip
    assert result["errors"] == {}
    assert 0 < result["requests"] <= 60
