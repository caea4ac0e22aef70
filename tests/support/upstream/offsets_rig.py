"""A runtime with a group that was taken over, and its offsets in a cluster."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from typing import Any, cast

from coordinator.runtime.api import Answer, CommitTicket, Reply
from coordinator.runtime.runtime import Runtime
from model.commands.offsets import OffsetCommit, OffsetFetch, TopicOffsets, TopicToFetch
from model.commands.places import AdoptedMember, AdoptGroup, NotePlace
from model.commands.transactions import TxnOffsetCommit
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, MemberId, ProducerId, TopicName
from model.log.commit_records import OffsetColumns, make_offset_columns
from model.places import Place
from model.responses.offsets import OffsetCommitResponse, OffsetFetchResponse
from model.topics import Topic
from tests.support.memory import MemoryLogStore
from tests.support.upstream.offset_cluster import OffsetCluster, Seats
from tests.support.virtual.server import CALLER, make_topic_id
from upstream.cluster.cluster import Cluster
from upstream.hooks import Takeovers
from upstream.offsets.cluster_offsets import DEFAULT_LIMITS, ClusterOffsets, OffsetLimits

G = GroupId("g")
FOO = TopicName("foo")
GENERATION = 7
PARTITIONS = 12


class OffsetsRig:
    """Members ``a`` and ``b`` of the classic protocol, at ``GENERATION``."""

    def __init__(self, *, fences: bool = True, limits: OffsetLimits = DEFAULT_LIMITS) -> None:
        self.fake = OffsetCluster()
        self.seats = Seats(self.fake, fences=fences)
        self.cluster = cast(Cluster, self.fake)
        self.takeovers: Takeovers = self.seats
        self.runtime = Runtime(MemoryLogStore(4), CoordinatorSettings())
        self._ticks = itertools.count()
        self.now_ms = 0
        self.offsets = ClusterOffsets(
            self.runtime, self.cluster, self.takeovers, now_ms=lambda: self.now_ms, limits=limits
        )

    async def start(self, *members: str) -> None:
        """Start with the group; members are ``a`` and ``b`` unless they are named."""
        await self.runtime.start([Topic(FOO, make_topic_id("foo"), PARTITIONS)])
        await self.runtime.loaded()
        adopted = tuple(
            AdoptedMember(MemberId(name), None, "client", "/127.0.0.1", 60_000, 30_000, b"")
            for name in members or ("a", "b")
        )
        command = AdoptGroup(CALLER, G, GENERATION, "consumer", "range", None, adopted)
        await self.runtime.call(command)
        self.seats.join(G)

    async def start_alone(self) -> None:
        """Start with the group and no members: whoever commits is none."""
        await self.runtime.start([Topic(FOO, make_topic_id("foo"), PARTITIONS)])
        await self.runtime.loaded()
        await self.runtime.call(NotePlace(CALLER, G, Place.MUSTER))
        self.seats.join(G)

    async def stop(self) -> None:
        await self.offsets.stop()
        await self.runtime.stop()

    def commit(self, member: str, *rows: tuple[int, int] | tuple[int, int, str]) -> Asked:
        """Commit offsets of partitions of ``foo``, with metadata."""
        return Asked(partial(self.offsets.commit, make_commit(member, *rows)))

    def commit_alone(self, *rows: tuple[int, int] | tuple[int, int, str]) -> Asked:
        """The same of who is no member."""
        return Asked(partial(self.offsets.commit, make_lone_commit(*rows)))

    def find_ticket(self) -> CommitTicket:
        """A ticket of who is no member."""
        ticket = self.offsets.ticket(make_lone_commit((0, 1)))
        assert ticket is not None
        return ticket

    def fetch(self, *partitions: int, require_stable: bool = False) -> Asked:
        """Fetch partitions of ``foo``; all if none is named."""
        topics = (TopicToFetch(FOO, None, partitions),) if partitions else None
        command = OffsetFetch(CALLER, G, topics, require_stable=require_stable)
        return Asked(partial(self.offsets.fetch, command))

    def commit_transaction(self, member: str, *rows: tuple[int, int]) -> Asked:
        """Commit in a transaction."""
        command = make_txn_commit(member, *rows)
        return Asked(partial(self.offsets.commit_transaction, command))


def make_commit(member: str, *rows: Any, topic: TopicName = FOO) -> OffsetCommit:
    """A commit of a member at ``GENERATION``."""
    return OffsetCommit(CALLER, G, MemberId(member), GENERATION, _make_topics(topic, *rows))


def make_lone_commit(*rows: Any) -> OffsetCommit:
    """A commit of who is no member."""
    return OffsetCommit(CALLER, G, MemberId(""), None, _make_topics(FOO, *rows))


def make_txn_commit(member: str, *rows: Any) -> TxnOffsetCommit:
    """The same in a transaction."""
    return TxnOffsetCommit(
        CALLER,
        G,
        ProducerId(5),
        3,
        _make_topics(FOO, *rows),
        MemberId(member),
        GENERATION,
        transactional_id="t",
    )


def _make_topics(topic: TopicName, *rows: Any) -> tuple[TopicOffsets, ...]:
    full = [(row[0], row[1], -1, row[2] if len(row) > 2 else "") for row in rows]
    return (TopicOffsets(topic, None, make_offset_columns(full)),)


class Released:
    """A commit with a ticket: whether it was taken, and what became of it."""

    def __init__(self, ticket: CommitTicket, partition: int, offset: int) -> None:
        self.codes: list[ErrorCode] = []
        self._event = asyncio.Event()
        offsets = OffsetColumns((partition,), (offset,), (-1,))
        self.is_taken = ticket.commit(offsets, 0, self._note)
        assert not self.codes, "answered before it was taken"

    def _note(self, error: ErrorCode = ErrorCode.NONE, /) -> None:
        self.codes.append(error)
        self._event.set()
        assert len(self.codes) == 1, "answered twice"

    async def code(self) -> ErrorCode:
        """The result."""
        assert self.is_taken
        async with asyncio.timeout(30):
            await self._event.wait()
        return self.codes[0]


class Asked:
    """An answer that is awaited; more than one is a bug."""

    def __init__(self, submit: Any) -> None:
        self.answers: list[Answer] = []
        self._event = asyncio.Event()
        reply: Reply = self._note
        submit(reply)

    def _note(self, answer: Answer) -> None:
        self.answers.append(answer)
        self._event.set()
        assert len(self.answers) == 1, "answered twice"

    @property
    def is_answered(self) -> bool:
        return bool(self.answers)

    async def answer(self) -> Answer:
        """The answer."""
        async with asyncio.timeout(30):
            await self._event.wait()
        return self.answers[0]

    async def said(self) -> str:
        """The answer in words: ``0 ok, 1 UNKNOWN...``, offsets, or the name of an error."""
        match await self.answer():
            case GroupError() as error:
                return error.code.name
            case OffsetCommitResponse(topics):
                return ", ".join(
                    f"{row.partition} {row.error.name}"
                    for topic in topics
                    for row in topic.partitions
                )
            case OffsetFetchResponse(topics=topics):
                return ", ".join(
                    f"{row.partition}={row.error.name if row.error else row.offset}"
                    for topic in topics
                    for row in topic.partitions
                )
            case other:
                return type(other).__name__
