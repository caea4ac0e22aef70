"""Refused joins are logged with the reason, at a limited rate."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from coordinator.runtime.loop.refused_joins import RefusedJoins
from coordinator.runtime.runtime import Runtime
from model.caller import Caller
from model.commands.classic import JoinGroup, JoinProtocol
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.topics import CreateTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import (
    GroupError,
    GroupIdNotFound,
    InconsistentGroupProtocol,
    MemberIdRequired,
    UnknownMemberId,
)
from model.ids import GroupId, MemberId, TopicId, TopicName
from tests.support.memory import MemoryLogStore

CALLER = Caller("User:ANONYMOUS", "worker", "/10.0.0.1")


def heartbeat(group: str, epoch: int = 0) -> ConsumerGroupHeartbeat:
    return ConsumerGroupHeartbeat(
        CALLER,
        GroupId(group),
        MemberId("n"),
        epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=(TopicName("orders"),),
        owned=(),
    )


def join(group: str) -> JoinGroup:
    protocols = (JoinProtocol("range", b"nonsense"),)
    own, name = MemberId("k"), GroupId(group)
    return JoinGroup(
        CALLER, name, None, own, 30_000, 60_000, "connect", protocols, requires_member_id=False
    )


async def test_a_refused_conversion_and_a_refused_join_are_lines() -> None:
    settings = CoordinatorSettings(group_initial_rebalance_delay_ms=0)
    runtime = Runtime(MemoryLogStore(4), settings)
    await runtime.start()
    await runtime.loaded()
    await runtime.call(CreateTopic(CALLER, TopicName("orders"), TopicId(b"t" * 16), 6))
    await runtime.call(join("g"))
    await runtime.call(heartbeat("c"))
    with capture_logs() as lines:
        for _ in range(3):
            with pytest.raises(GroupError):
                await runtime.call(heartbeat("g"))
            with pytest.raises(GroupError):
                await runtime.call(join("c"))
    await runtime.stop()
    said = [line for line in lines if line["event"].endswith("_refused")]
    assert [(line["event"], line["group_id"]) for line in said] == [
        ("conversion_refused", "g"),
        ("join_refused", "c"),
    ]
    assert {line["client_id"] for line in said} == {"worker"}
    assert "the protocol type is connect, not consumer" in said[0]["cause"]


def test_each_group_is_said_once_in_ten_seconds() -> None:
    refused = RefusedJoins()
    with capture_logs() as lines:
        for now_ms in range(0, 30_000, 100):
            refused.note(join("g"), InconsistentGroupProtocol("x"), now_ms)
            refused.note(heartbeat("h"), GroupIdNotFound("y"), now_ms)
    assert len(lines) == 6


def test_what_passes_or_is_not_a_join_is_not_said() -> None:
    refused = RefusedJoins()
    with capture_logs() as lines:
        refused.note(join("g"), MemberIdRequired("x", MemberId("k")), 0)
        refused.note(join("g"), UnknownMemberId("x"), 0)
        refused.note(heartbeat("g", epoch=3), GroupIdNotFound("x"), 0)
    assert lines == []


def test_groups_without_end_are_not_remembered() -> None:
    refused = RefusedJoins()
    with capture_logs():
        for number in range(5_000):
            refused.note(join(f"g{number}"), InconsistentGroupProtocol("x"), 0)
    assert len(refused._next_ms) == 1_000
