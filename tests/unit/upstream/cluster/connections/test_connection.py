"""A connection to a broker that lies, stalls, or falls over: it ends, and so does all on it."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.codec.client_frames import ClientRequest
from gateway.codec.kio_schema import response_type
from tests.support.upstream.fake_broker import (
    METADATA,
    Act,
    Asked,
    FakeCluster,
    make_response,
)
from tests.support.waiting import until
from tests.support.wire.frames import make_frame, parse
from upstream.cluster.cluster import ClusterUnreachable, NotSent
from upstream.cluster.cluster_client import ClusterClient
from upstream.cluster.cluster_settings import ClusterSettings

DESCRIBE = 15
DESCRIBE_G = ClientRequest(DESCRIBE, {"groups": ("g",)})
NOBODY = ClientRequest(DESCRIBE, {"groups": ()})


@asynccontextmanager
async def one_broker(**settings: Any) -> AsyncIterator[tuple[FakeCluster, ClusterClient]]:
    async with FakeCluster() as cluster:
        client = ClusterClient(ClusterSettings(cluster.addresses, **settings))
        await client.start()
        try:
            yield cluster, client
        finally:
            await client.stop()


def size(count: int) -> bytes:
    return struct.pack(">i", count)


HOSTILE = {
    "garbage": b"\xde\xad\xbe\xef" * 8,
    "an HTTP server": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a huge size": size(0x7FFF_FFFF),
    "a negative size": size(-5),
    "no size": size(0),
    "less than a correlation id": size(3) + b"abc",
    "a correlation id that was never sent": size(4) + struct.pack(">i", 12345),
    "an empty body": b"",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
async def test_what_is_no_answer_ends_the_connection_and_another_is_opened(data: bytes) -> None:
    async with one_broker() as (cluster, client):
        broker = cluster[1]

        def lie(asked: Asked) -> bytes:
            broker.answers[DESCRIBE] = lambda asked: {"groups": ()}
            return data or size(4) + struct.pack(">i", asked.correlation_id)

        broker.answers[DESCRIBE] = lie
        before = broker.connections
        asked = [asyncio.create_task(client.ask(NOBODY, node_id=1)) for _ in range(3)]
        done = await asyncio.gather(*asked, return_exceptions=True)
        assert isinstance(done[0], ClusterUnreachable)
        assert (await client.ask(NOBODY, node_id=1)).groups == ()
        assert broker.connections == before + 1


@pytest.mark.parametrize("seed", range(20))
async def test_bytes_that_are_changed_anywhere_neither_hang_nor_crash(seed: int) -> None:
    rng = random.Random(seed)
    members = ({"member_id": "m", "member_metadata": b"x" * 50},)
    groups = ({"group_id": "g", "group_state": "Stable", "members": members},)

    def lie(asked: Asked) -> bytes:
        data = bytearray(make_response(asked, {"groups": groups}))
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(4, len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        return bytes(data)

    async with one_broker() as (cluster, client):
        cluster[1].answers[DESCRIBE] = lie
        asked = [client.ask(DESCRIBE_G, node_id=1, timeout_ms=5_000) for _ in range(20)]
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            assert isinstance(answer, ClusterUnreachable | response_type(DESCRIBE, 6))
        cluster[1].answers[DESCRIBE] = lambda asked: {"groups": ()}
        assert (await client.ask(DESCRIBE_G, node_id=1)).groups == ()


async def test_an_answer_cut_short_and_closed() -> None:
    async with one_broker() as (cluster, client):
        whole = {"groups": ({"group_id": "g"},)}
        cluster[1].answers[DESCRIBE] = lambda asked: make_response(asked, whole)[:-3]
        asking = asyncio.create_task(client.ask(DESCRIBE_G, node_id=1))
        await until(lambda: cluster[1].count(DESCRIBE))
        cluster[1].cut()
        with pytest.raises(ClusterUnreachable):
            await asking


async def test_half_a_frame_and_then_silence_ends_in_time() -> None:
    async with one_broker(request_timeout_ms=150) as (cluster, client):
        cluster[1].answers[DESCRIBE] = lambda asked: size(100) + b"abc"
        with pytest.raises(ClusterUnreachable):
            await client.ask(DESCRIBE_G, node_id=1, timeout_ms=300)
        cluster[1].answers[DESCRIBE] = lambda asked: {"groups": ()}
        assert (await client.ask(DESCRIBE_G, node_id=1)).groups == ()


async def test_a_broker_that_is_half_open_is_noticed_and_left() -> None:
    async with one_broker(request_timeout_ms=200) as (cluster, client):
        cluster[1].answers[DESCRIBE] = lambda asked: Act.SILENCE
        before = cluster[1].connections
        patient = asyncio.create_task(client.ask(DESCRIBE_G, node_id=1, timeout_ms=60_000))
        await until(lambda: cluster[1].count(DESCRIBE))
        with pytest.raises(ClusterUnreachable):
            await client.ask(DESCRIBE_G, node_id=1, timeout_ms=300)
        with pytest.raises(ClusterUnreachable, match="not answered within"):
            await patient
        cluster[1].answers[DESCRIBE] = lambda asked: {"groups": ()}
        assert (await client.ask(DESCRIBE_G, node_id=1)).groups == ()
        assert cluster[1].connections == before + 1


async def test_an_answer_in_many_small_pieces_is_read() -> None:
    async with one_broker() as (cluster, client):
        groups = tuple({"group_id": f"g{n}", "group_state": "Empty"} for n in range(3_000))
        cluster[1].answers[DESCRIBE] = lambda asked: {"groups": groups}
        answer = await client.ask(DESCRIBE_G)
        assert [row.group_id for row in answer.groups] == [row["group_id"] for row in groups]


async def test_a_frame_above_the_limit_ends_the_connection() -> None:
    async with one_broker(frame_bytes_max=20_000) as (cluster, client):
        groups = ({"group_id": "x" * 30_000},)
        cluster[1].answers[DESCRIBE] = lambda asked: {"groups": groups}
        with pytest.raises(ClusterUnreachable, match="size 30"):
            await client.ask(DESCRIBE_G)


async def test_more_requests_than_may_wait_are_refused_unsent() -> None:
    async with one_broker(unanswered_max=3) as (cluster, client):
        cluster[1].answers[DESCRIBE] = lambda asked: Act.SILENCE
        link = await client.open_link(1)
        asked = [asyncio.create_task(link.ask(DESCRIBE_G)) for _ in range(3)]
        await until(lambda: cluster[1].count(DESCRIBE))
        with pytest.raises(NotSent, match="3 requests are not answered"):
            await link.ask(DESCRIBE_G)
        link.close()
        await asyncio.gather(*asked, return_exceptions=True)


async def test_a_raw_link_passes_frames_as_they_are() -> None:
    async with one_broker() as (cluster, client):
        link = await client.open_raw(None)
        link.send(make_frame(METADATA, 9, correlation_id=77, topics=()))
        await link.drain()
        frame = await link.read_frame()
        assert frame is not None
        correlation_id, answer = parse(METADATA, 9, frame[4:])
        assert (correlation_id, answer.cluster_id) == (77, "fake-cluster")
        cluster[1].cut()
        assert await link.read_frame() is None
        link.send(b"nobody hears this")
        await link.drain()
        link.close()
        with pytest.raises(NotSent, match="no broker 9"):
            await client.open_raw(9)


async def test_a_raw_link_ends_at_garbage() -> None:
    async with one_broker() as (cluster, client):
        cluster[1].greeting = b"\xff" * 10
        link = await client.open_raw(1)
        assert await link.read_frame() is None
