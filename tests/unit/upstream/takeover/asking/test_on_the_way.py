"""What members send while their group is on its way here."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from coordinator.runtime.api import Answer, Reply
from model.commands.classic import ClassicHeartbeat, JoinGroup, JoinProtocol, SyncGroup
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.offsets import OffsetFetch
from model.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    ErrorCode,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from model.ids import GroupId, MemberId
from model.responses.classic import ClassicHeartbeatResponse
from model.responses.response import Done
from model.topics import TopicImage
from tests.support.virtual.server import CALLER
from tests.support.waiting import until
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.takeover.asking import on_the_way as module
from upstream.takeover.asking.on_the_way import MembersOnTheWay
from upstream.takeover.asking.passed_offsets import PassedOffsets

G = GroupId("g")
M = MemberId("m")
BEAT = ClassicHeartbeat(CALLER, G, M, 4)
JOIN = JoinGroup(
    CALLER, G, M, MemberId("n"), 6_000, 60_000, "consumer", (JoinProtocol("range", b""),)
)


class Scripted:
    """Answers heartbeats with ``code``; ``None``: not at all. Fetches wait for ``open``."""

    def __init__(self) -> None:
        self.code: ErrorCode | None = ErrorCode.NONE
        self.asked: list[int] = []
        self.open = asyncio.Event()

    async def ask_coordinator(self, group_id: str, request: Any, **_: object) -> Any:
        self.asked.append(request.key)
        if request.key == 9:
            await self.open.wait()
            raise ClusterUnreachable("closed")
        if self.code is None:
            raise ClusterUnreachable("silent")
        return SimpleNamespace(error_code=self.code)


class Way:
    """The object, what was heard, and what was admitted."""

    def __init__(self) -> None:
        self.cluster = Scripted()
        self.heard: list[tuple[str, int]] = []
        self.admitted: list[Command] = []
        cluster = cast(Cluster, self.cluster)
        passed = PassedOffsets(cluster, TopicImage)
        self.members = MembersOnTheWay(cluster, passed, lambda _, m, e: self.heard.append((m, e)))
        self.members.submit_here = self._admit

    def _admit(self, command: Command, reply: Reply) -> None:
        self.admitted.append(command)
        reply(Done())

    def send(self, command: Command) -> list[Answer]:
        answers: list[Answer] = []
        self.members.submit(command, answers.append)
        return answers


async def test_what_is_held_goes_to_the_coordinator_in_order_when_the_group_is_here() -> None:
    way = Way()
    answers = [way.send(BEAT), way.send(JOIN)]
    sync = SyncGroup(CALLER, G, M, 4)
    answers.append(way.send(sync))
    assert way.heard == [("m", 4), ("m", -1), ("m", 4)]
    way.members.admit(G)
    assert way.admitted == [BEAT, JOIN, sync]
    assert answers == [[Done()], [Done()], [Done()]]


async def test_when_the_take_fails_everybody_is_sent_to_the_cluster() -> None:
    way = Way()
    answers = [way.send(BEAT), way.send(JOIN), way.send(OffsetFetch(CALLER, G, None))]
    way.members.turn_away(G)
    way.cluster.open.set()
    await until(lambda: all(answers))
    assert all(isinstance(each[0], NotCoordinator) for each in answers)
    way.members.turn_away(G)
    assert [len(each) for each in answers] == [1, 1, 1]


async def test_a_heartbeat_keeps_the_session_in_the_cluster_alive() -> None:
    way = Way()
    way.send(BEAT)
    await until(lambda: way.cluster.asked == [12])
    way.members.close()


async def test_a_member_that_the_cluster_removed_hears_of_it() -> None:
    way = Way()
    way.cluster.code = ErrorCode.UNKNOWN_MEMBER_ID
    answers = way.send(BEAT)
    await until(lambda: bool(answers))
    assert isinstance(answers[0], UnknownMemberId)


async def test_a_second_heartbeat_answers_the_first() -> None:
    way = Way()
    first, second = way.send(BEAT), way.send(BEAT)
    assert first == [ClassicHeartbeatResponse()]
    assert second == []
    way.members.close()
    assert isinstance(second[0], CoordinatorNotAvailable)


async def test_nothing_is_held_longer_than_a_client_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_HELD_MAX_MS", 20)
    way = Way()
    beat, join = way.send(BEAT), way.send(JOIN)
    sync = way.send(SyncGroup(CALLER, G, M, 4))
    await until(lambda: bool(beat and join and sync))
    assert beat == [ClassicHeartbeatResponse()]
    assert isinstance(join[0], CoordinatorLoadInProgress)
    assert isinstance(sync[0], RebalanceInProgress)
    way.members.admit(G)
    assert way.admitted == []


async def test_nor_is_what_is_queued(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HELD_MAX_MS", 20)
    way = Way()
    await way.members.hold_commits(G)
    fetches = [way.send(OffsetFetch(CALLER, G, None)) for _ in range(3)]
    await until(lambda: all(fetches))
    assert all(isinstance(each[0], CoordinatorLoadInProgress) for each in fetches)
    way.members.pass_again(G)
    way.members.admit(G)
    assert (way.cluster.asked, way.admitted) == ([], [])


async def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HELD_MAX", 1)
    way = Way()
    way.send(BEAT)
    answers = way.send(JOIN)
    assert isinstance(answers[0], CoordinatorLoadInProgress)
    way.members.turn_away(G)
    assert way.send(JOIN) == []
    way.members.close()


async def test_commits_are_held_while_the_members_are_removed() -> None:
    way = Way()
    first = way.send(OffsetFetch(CALLER, G, None))
    await until(lambda: way.cluster.asked == [9])
    holding = asyncio.create_task(way.members.hold_commits(G))
    second = way.send(OffsetFetch(CALLER, G, None, require_stable=True))
    way.cluster.open.set()
    await holding
    assert isinstance(first[0], CoordinatorNotAvailable)
    assert second == []
    way.members.pass_again(G)
    await until(lambda: bool(second))


async def test_members_of_the_consumer_protocol_are_asked_to_try_again() -> None:
    way = Way()
    answers = way.send(ConsumerGroupHeartbeat(CALLER, G, M, 0))
    assert isinstance(answers[0], CoordinatorLoadInProgress)
