"""The law of cached heartbeats: while the ticket is valid, the coordinator would answer the same.

Members of one group come, heartbeat, acknowledge, change their subscription and go, topics come
and grow, offsets are committed, all in an order drawn from a seed. After every step each kept
answer whose ticket lives is held against the coordinator's answer to the same command.
"""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from coordinator.runtime.runtime import Runtime
from gateway.apis.groups.k68_consumer_group_heartbeat import make_command
from gateway.codec.encoding import encode
from gateway.heartbeats.heartbeat_wire import encode_heartbeat_response, make_heartbeat_decoder
from gateway.pace.cached_heartbeat import CachedHeartbeat
from model.caller import INTERNAL
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.topics import CreateTopic, GrowTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import TopicName
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from tests.support.gateway.wire_door import Door, Gateway
from tests.support.gateway.wire_rig import topic_id_of, with_settings
from tests.support.gateway.wire_steps import COMMIT, HEARTBEAT, commit_topics
from tests.support.memory import MemoryLogStore
from tests.support.wire.frames import frame, make_request, parse
from tests.support.wire.member import WireState

STEPS = 200


class Client(WireState):
    """A member that follows its assignment, though not always at once."""

    def __init__(self, gateway: Gateway, name: str) -> None:
        super().__init__("g", ("t",), name)
        self.door = gateway.connect()

    async def heartbeat(self, said: dict[str, Any]) -> None:
        self.door.request(HEARTBEAT, 1, 1, **said)
        [(_, answer)] = await settle(self.door)
        if answer.error_code:
            self.forget()
            return
        assignment = self.hear(answer)
        if assignment is not None:
            self.owned = assignment

    async def beat(self, **said: Any) -> None:
        if not self.member_epoch:
            self.forget()
            await self.heartbeat(self.compose_full())
        else:
            await self.heartbeat(self.compose_partial(**said))

    async def leave(self) -> None:
        if self.member_epoch:
            self.door.request(HEARTBEAT, 1, 1, **self.compose_leave())
            await settle(self.door)
            self.member_epoch = 0


async def settle(door: Door) -> Any:
    """The responses that arrive once the coordinator has flushed."""
    return [parse(HEARTBEAT, 1, data) for data in await frames_of(door)]


async def frames_of(door: Door) -> list[bytes]:
    async with asyncio.timeout(30):
        while True:
            found = door.frames()
            if found:
                return found
            await asyncio.sleep(0)


async def check_kept_answers(clients: list[Client], runtime: Runtime) -> int:
    """How many cached heartbeats were valid, and correct."""
    alive = 0
    for client in clients:
        for raw, steady in client.door.connection.heartbeats.cached.items():
            if not steady.ticket.is_valid():
                continue
            answer = await runtime.call(decode_heartbeat(raw, steady))
            assert isinstance(answer, ConsumerGroupHeartbeatResponse)
            assert not answer.has_changes
            expected, _ = encode_heartbeat_response(answer, steady.sent_interval_ms)
            assert steady.tail == b"\x00" + expected
            alive += 1
    return alive


def decode_heartbeat(raw: bytes, steady: CachedHeartbeat) -> ConsumerGroupHeartbeat:
    """The command of a heartbeat request of these bytes, which start with the client id."""
    body_at = 2 + int.from_bytes(raw[:2], "big") + 1
    request = make_heartbeat_decoder(steady.version, 1_000)(raw, body_at, len(raw))
    return make_command(SimpleNamespace(caller=steady.caller), request)  # type: ignore[arg-type]


async def step(rng: random.Random, clients: list[Client], runtime: Runtime) -> None:
    client = rng.choice(clients)
    match rng.choices(
        ["beat", "acknowledge", "repeat", "change", "leave", "topic", "commit"],
        [40, 30, 30, 4, 4, 3, 10],
    )[0]:
        case "beat":
            await client.beat()
        case "acknowledge":
            await client.beat(topic_partitions=client.owned_rows())
        case "repeat":
            for _ in range(3):
                await client.beat()
        case "change":
            client.topics = rng.choice([("t",), ("t", "u"), ("u", "v"), ()])
            await client.beat(
                subscribed_topic_names=client.topics,
                rebalance_timeout=300_000,
                topic_partitions=client.owned_rows(),
            )
        case "leave":
            await client.leave()
        case "topic":
            await change_topics(rng, runtime)
        case "commit":
            topics = commit_topics(9, "t", {0: (rng.randrange(1_000), "")})
            client.door.send(commit_frame(client, topics))
            await frames_of(client.door)


def commit_frame(client: Client, topics: tuple[Any, ...]) -> bytes:
    fields = {
        "group_id": "g",
        "member_id": client.member_id,
        "generation_id_or_member_epoch": client.member_epoch,
        "topics": topics,
    }
    request = make_request(COMMIT, 9, **fields)
    return frame(COMMIT, 9, 1, encode(type(request), request))


async def change_topics(rng: random.Random, runtime: Runtime) -> None:
    name = TopicName(rng.choice(["t", "u", "v"]))
    topic = runtime.image.by_name.get(name)
    if topic is None:
        await runtime.call(CreateTopic(INTERNAL, name, topic_id_of(name), 2))
    elif topic.partitions < 12:
        await runtime.call(GrowTopic(INTERNAL, name, topic.partitions + 1))


@pytest.mark.parametrize("seed", range(8))
async def test_kept_answer_is_the_coordinators(seed: int) -> None:
    rng = random.Random(seed)
    runtime = Runtime(MemoryLogStore(50), CoordinatorSettings())
    await runtime.start()
    await runtime.loaded()
    await runtime.call(CreateTopic(INTERNAL, TopicName("t"), topic_id_of("t"), 4))
    gateway = Gateway(with_settings(gateway_park_ms=0), coordinator=runtime)
    clients = [Client(gateway, f"m{number}") for number in range(4)]
    alive = 0
    for _ in range(STEPS):
        await step(rng, clients, runtime)
        alive += await check_kept_answers(clients, runtime)
    assert alive > STEPS / 4, "the law was hardly ever tried"
    await runtime.stop()
