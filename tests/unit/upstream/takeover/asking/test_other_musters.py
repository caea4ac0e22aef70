"""Other Musters in front of the same cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from tests.sim.upstream.cluster_model import ClusterModel
from tests.sim.upstream.move_driver import GROUP
from tests.support.upstream.model_cluster import ModelCluster
from upstream.cluster.cluster import Cluster
from upstream.sentinel.sentinel_sign import (
    INSTANCE_ID,
    PROTOCOL_NAME,
    SentinelSign,
    encode_signed_assignment,
)
from upstream.takeover.asking.other_musters import PROBES_MAX, OtherMusters, probe

OWN = SentinelSign("uuid-1", "127.0.0.1", 1)


@asynccontextmanager
async def listening(answer: bytes) -> AsyncIterator[int]:
    """A port where each connection is answered with these bytes, and then closed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(64)
        writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def make(
    port: int, uuid: str = "uuid-2", *, is_known: bool = True
) -> tuple[OtherMusters, list[str]]:
    """A cluster with a group that the Muster at this port has."""
    model = ClusterModel(initial_delay_ms=0)
    joined: list[str] = []
    model.join(
        GROUP, "", INSTANCE_ID, "m", {PROTOCOL_NAME: b""}, lambda j: joined.append(j.member_id)
    )
    model.advance(0)
    sign = SentinelSign(uuid, "127.0.0.1", port)
    assignment = encode_signed_assignment(sign, [])
    model.sync(GROUP, joined[0], INSTANCE_ID, 1, {joined[0]: assignment}, lambda synced: None)
    dead: list[str] = []
    cluster = cast(Cluster, ModelCluster(model))
    known = (("127.0.0.1", port),) if is_known else ()
    return OtherMusters(cluster, OWN, lambda group_id: False, dead.append, known), dead


async def test_a_muster_that_answers_is_found() -> None:
    async with listening(b"\x00\x00\x00\x06aaaaaa") as port:
        others, dead = make(port)
        await others.look()
        assert others.find(GROUP) == SentinelSign("uuid-2", "127.0.0.1", port)
        assert others.find("other") is None
        assert dead == []


async def test_a_sign_that_nobody_has_named_is_not_believed() -> None:
    async with listening(b"\x00\x00\x00\x06aaaaaa") as port:
        others, dead = make(port, is_known=False)
        await others.look()
        assert others.find(GROUP) is None
        assert not others.is_dead(GROUP)
        assert dead == []


async def test_a_muster_is_dead_after_several_probes() -> None:
    others, dead = make(2)
    for _ in range(PROBES_MAX - 1):
        await others.look()
        assert not others.is_dead(GROUP)
    await others.look()
    assert dead == [GROUP]
    assert others.is_dead(GROUP)
    assert others.find(GROUP) is None


async def test_the_sentinel_of_a_store_that_is_gone_is_dead_at_once() -> None:
    others, dead = make(OWN.port)
    await others.look()
    assert dead == [GROUP]


async def test_our_own_groups_are_none_of_another_one() -> None:
    others, dead = make(2, "uuid-1")
    for _ in range(PROBES_MAX):
        await others.look()
    assert dead == []
    assert others.find(GROUP) is None


async def test_what_is_no_kafka_server_does_not_answer_a_probe() -> None:
    for answer in (b"", b"HTTP", b"\xff\xff\xff\xff", b"\x00\x00"):
        async with listening(answer) as port:
            assert not await probe("127.0.0.1", port)
