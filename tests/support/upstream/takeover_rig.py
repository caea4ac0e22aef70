"""A Muster in front of the simulated cluster: a runtime, the takeovers, and stock members."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import cast

from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.runtime import Runtime
from model.commands.classic import ClassicHeartbeat, JoinGroup, JoinProtocol
from model.commands.command import Command
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicName
from model.places import Place
from model.topics import Topic
from muster.assignors.embedded import encode_subscription, make_subscription
from tests.sim.upstream.cluster_model import ClusterModel
from tests.sim.upstream.stock_member import StockMember
from tests.support.memory import MemoryLogStore
from tests.support.upstream.model_cluster import ModelCluster
from tests.support.virtual.server import CALLER, make_topic_id
from upstream.cluster.cluster import Cluster
from upstream.sentinel.sentinel_sign import SentinelSign
from upstream.takeover.machine.move import MoveRules
from upstream.takeover.machine.takeover_events import MemberTimes
from upstream.takeover.takeovers import Takeovers

G = GroupId("orders")
RULES = MoveRules(uuid="uuid-1", grace_ms=600, silent_max_ms=2_000, poll_ms=20, pause_ms=50)


class Relayed:
    """Who came through a relay."""

    def __init__(self) -> None:
        self.members: dict[str, MemberTimes] = {}
        self.ended: list[str] = []

    def members_of(self, group_id: str) -> dict[str, MemberTimes]:
        return self.members

    def end_waits(self, group_id: str) -> None:
        self.ended.append(group_id)


class NoMoves:
    """Offsets that stay in the cluster."""

    async def carry_here(self, group_id: GroupId) -> None:
        return None

    async def carry_back(self, group_id: GroupId) -> None:
        return None

    def reopen(self, group_id: GroupId) -> None:
        return None


PORTS = (1, 2)
"""Of the Musters in front of one cluster; nobody listens there."""


class TakeoverRig:
    """One Muster. ``restart`` keeps its log and nothing else."""

    def __init__(
        self, model: ClusterModel | None = None, uuid: str = "uuid-1", port: int = 1
    ) -> None:
        self.model = model or ClusterModel(initial_delay_ms=50)
        self.cluster = ModelCluster(self.model)
        self.store = MemoryLogStore(4)
        self.relayed = Relayed()
        self.uuid = uuid
        self.port = port
        self.steps: list[str] = []
        self.on_step: Callable[[str], Awaitable[None]] | None = None

    async def start(self) -> None:
        self.runtime = Runtime(self.store, CoordinatorSettings())
        await self.runtime.start([Topic(TopicName("orders"), make_topic_id("orders"), 4)])
        await self.runtime.loaded()
        self.takeovers = Takeovers(
            cast(Cluster, self.cluster),
            self.runtime,
            self.relayed,
            SentinelSign(self.uuid, "127.0.0.1", self.port),
            rules=RULES,
            on_step=self._note_step,
            others=[("127.0.0.1", port) for port in PORTS],
        )
        self.takeovers.attach(self.runtime.submit, NoMoves())
        self.cluster.start()
        await self.takeovers.start()

    async def stop(self) -> None:
        await self.takeovers.stop()
        await self.cluster.stop()
        await self.runtime.stop()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def _note_step(self, step: str, group_id: str) -> None:
        self.steps.append(step)
        if self.on_step is not None:
            await self.on_step(step)

    @property
    def place(self) -> Place:
        return self.takeovers.find_place(G)

    def join_stock(self, count: int) -> list[StockMember]:
        """A stable group in the cluster, whose members came through a relay."""
        members = [StockMember(self.model, G, f"stock{number}") for number in range(count)]
        for member in members:
            member.join()
        self.model.advance(self.model.now_ms + self.model.initial_delay_ms)
        assert all(member.is_assigned for member in members)
        self.relayed.members = {member.member_id: MemberTimes() for member in members}
        return members

    def beat(self, member: StockMember) -> Asked:
        """A heartbeat of a member that comes to Muster's node."""
        return self.send(ClassicHeartbeat(CALLER, G, MemberId(member.member_id), member.generation))

    def join(self, member_id: str) -> Asked:
        """A member joins at Muster's node."""
        metadata = encode_subscription(make_subscription(("orders",)), 1)
        return self.send(
            JoinGroup(
                CALLER,
                G,
                MemberId(member_id),
                MemberId("new"),
                45_000,
                60_000,
                "consumer",
                (JoinProtocol("range", metadata),),
            )
        )

    def send(self, command: Command) -> Asked:
        """As the fronted coordinator does it."""
        if self.place in (Place.MUSTER, Place.RETURNING):
            return Asked(partial(self.runtime.submit, command))
        return Asked(partial(self.takeovers.on_the_way.submit, command))


class Asked:
    """An answer that is awaited; more than one is a bug."""

    def __init__(self, submit: Callable[[Reply], None]) -> None:
        self.answer: Answer | None = None
        self._event = asyncio.Event()
        submit(self._note)

    def _note(self, answer: Answer) -> None:
        assert self.answer is None, "answered twice"
        self.answer = answer
        self._event.set()

    async def wait(self) -> Answer:
        """The answer."""
        async with asyncio.timeout(10):
            await self._event.wait()
        assert self.answer is not None
        return self.answer
