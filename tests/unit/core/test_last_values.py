"""The last generation, the last epoch, and a record that is too large do not end the process.

An imported log may have the first two."""

from __future__ import annotations

import pytest

from coordinator.core.replay.group_records import replay
from coordinator.core.state.classic import classic_group
from model.commands.classic import JoinGroup, JoinProtocol, MemberAssignment, SyncGroup
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import UnknownServerError
from model.ids import GroupId, MemberId
from model.log.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    Record,
)
from model.responses.classic import JoinGroupResponse
from tests.support.virtual.server import CALLER, VirtualServer

G = GroupId("g")
LAST = (1 << 31) - 1


def make_server() -> VirtualServer:
    settings = CoordinatorSettings(group_initial_rebalance_delay_ms=0)
    return VirtualServer({"foo": 2}, settings=settings)


def join(server: VirtualServer) -> JoinGroupResponse:
    command = JoinGroup(
        CALLER,
        G,
        None,
        MemberId("k"),
        45_000,
        60_000,
        "own",
        (JoinProtocol("x", b""),),
        requires_member_id=False,
    )
    pending = server.submit(command)
    server.advance(10)
    assert isinstance(pending.answer, JoinGroupResponse)
    return pending.answer


def sync(server: VirtualServer, generation: int, given: bytes) -> object:
    assignments = (MemberAssignment(MemberId("k"), given),)
    return server.ask(SyncGroup(CALLER, G, MemberId("k"), generation, assignments))


def test_after_the_last_generation_comes_the_first() -> None:
    server = make_server()
    record = GroupMetadataValue("own", LAST, "x", None, 0, ())
    replay(server.runtime._shard_of(G), Record(GroupMetadataKey(G), record))
    joined = join(server)
    assert joined.generation == 1
    assert not isinstance(sync(server, 1, b"a"), UnknownServerError)
    assert not server.failures


def test_after_the_last_epoch_nobody_joins_and_who_is_there_may_go() -> None:
    server = make_server()
    server.join("g", "a", ["foo"])
    shard = server.runtime._shard_of(G)
    replay(shard, Record(ConsumerGroupMetadataKey(G), ConsumerGroupMetadataValue(LAST, 0)))
    value = ConsumerGroupTargetAssignmentMetadataValue(LAST)
    replay(shard, Record(ConsumerGroupTargetAssignmentMetadataKey(G), value))
    answer = server.ask(server.join_command("g", "b", ["foo"]))
    assert isinstance(answer, UnknownServerError)
    assert "delete the group" in str(answer)
    server.leave("g", "a")
    assert server.group("g").member_count == 0
    assert not server.failures


def test_a_record_that_is_too_large_is_refused_before_anything_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bug: it was replayed before the writer failed to encode it, and the process ended."""
    monkeypatch.setattr(classic_group, "RECORD_MAX_BYTES", 1_000)
    server = make_server()
    joined = join(server)
    before = server.runtime._shard_of(G).classic_group(G)
    assert isinstance(sync(server, joined.generation, bytes(1_001)), UnknownServerError)
    assert server.runtime._shard_of(G).classic_group(G) == before
    assert not isinstance(sync(server, joined.generation, bytes(999)), UnknownServerError)
    assert not server.failures
