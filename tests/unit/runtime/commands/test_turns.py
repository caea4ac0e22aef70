"""How many requests of members are handled per event-loop iteration, and per batch."""

from __future__ import annotations

import pytest

from coordinator.core.state.shard import Shard
from coordinator.dispatch.handle import ShardCommand
from coordinator.runtime.api import Reply
from coordinator.runtime.commands import command_turns
from coordinator.runtime.commands.command_turns import Turns
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave, ReconcileMember
from model.errors import UnknownServerError
from model.ids import GroupId, MemberId
from tests.support.virtual.server import CALLER, VirtualServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> VirtualServer:
    monkeypatch.setattr(command_turns, "SLICE", 4)
    return VirtualServer({"foo": 40})


def note_handled(server: VirtualServer, monkeypatch: pytest.MonkeyPatch) -> list[type]:
    handled: list[type] = []
    handle = server.runtime.parts.turns._handle

    def note(command: ShardCommand, reply: Reply, shard: Shard | None) -> None:
        handled.append(type(command))
        handle(command, reply, shard)

    monkeypatch.setattr(server.runtime.parts.turns, "_handle", note)
    return handled


def test_a_turn_takes_a_slice_and_the_rest_waits_in_order(
    server: VirtualServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    handled = note_handled(server, monkeypatch)
    joins = [server.submit(server.join_command("g", f"m{n}", ["foo"])) for n in range(10)]
    assert handled == [ConsumerGroupHeartbeat] * 4
    assert server.runtime.parts.turns.is_busy
    most, before = 0, len(handled)
    while not all(join.is_answered for join in joins):
        server.scheduler.step()
        most = max(most, len(handled) - before)
        before = len(handled)
    assert most <= 8  # Those of one slice and their second halves.
    assert handled.count(ConsumerGroupHeartbeat) == handled.count(ReconcileMember) == 10
    assert [m.member_id for m in server.group("g").members()] == [f"m{n}" for n in range(10)]


def test_second_halves_of_a_slice_are_in_the_batch_of_the_first(
    server: VirtualServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    handled = note_handled(server, monkeypatch)
    for n in range(10):
        server.submit(server.join_command("g", f"m{n}", ["foo"]))
    server.settle()
    assert handled == [
        *[ConsumerGroupHeartbeat] * 4,
        *[ReconcileMember] * 4,
        *[ConsumerGroupHeartbeat] * 4,
        *[ReconcileMember] * 4,
        *[ConsumerGroupHeartbeat] * 2,
        *[ReconcileMember] * 2,
    ]


def test_who_leaves_is_not_overtaken_by_its_own_join(server: VirtualServer) -> None:
    joins = [server.submit(server.join_command("g", f"m{n}", ["foo"])) for n in range(10)]
    left = server.submit(ConsumerGroupLeave(CALLER, GroupId("g"), MemberId("m9"), -1))
    server.settle()
    assert joins[9].is_answered
    assert left.is_answered
    assert {m.member_id for m in server.group("g").members()} == {f"m{n}" for n in range(9)}


def test_a_server_that_stops_handles_what_waits(server: VirtualServer) -> None:
    joins = [server.submit(server.join_command("g", f"m{n}", ["foo"])) for n in range(10)]
    assert isinstance(server.runtime.parts.turns, Turns)
    assert server.runtime.parts.turns.is_busy
    server.settle()
    assert not server.runtime.parts.turns.is_busy
    assert all(join.is_answered for join in joins)


@pytest.mark.parametrize("failing", [ConsumerGroupHeartbeat, ReconcileMember])
def test_what_fails_in_a_turn_is_answered_and_is_nobody_elses(
    server: VirtualServer, monkeypatch: pytest.MonkeyPatch, failing: type
) -> None:
    handle = server.runtime.parts.turns._handle

    def fail(command: ShardCommand, reply: Reply, shard: Shard | None) -> None:
        if isinstance(command, failing) and getattr(command, "member_id", None) == "m6":
            raise ZeroDivisionError("a bug")
        handle(command, reply, shard)

    monkeypatch.setattr(server.runtime.parts.turns, "_handle", fail)
    joins = [server.submit(server.join_command("g", f"m{n}", ["foo"])) for n in range(10)]
    server.settle()
    refused = [n for n, join in enumerate(joins) if isinstance(join.answer, UnknownServerError)]
    assert refused == [6]
    assert not server.failures
