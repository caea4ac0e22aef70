"""Entries of the ledger of rebalances: what the store has after something happened to a group."""

from __future__ import annotations

import pytest

from model.commands.consumer import LeaveGroup, LeavingMember
from model.commands.groups import DeleteGroup
from model.ids import GroupId, MemberId
from model.past.causes import CauseKind
from model.past.rebalances import HeldUpBy, Rebalance
from storage.causes_codec import decode_causes_key, decode_rebalance
from tests.support.virtual.server import CALLER, VirtualServer

G = GroupId("g")


def entries(server: VirtualServer) -> list[Rebalance]:
    return [
        decode_rebalance(key, packed)
        for key, packed in server.store.causes()
        if decode_causes_key(key)[0] == G
    ]


@pytest.fixture
def server() -> VirtualServer:
    server = VirtualServer({"foo": 4})
    server.join("g", "a", ["foo"])
    server.settle()
    return server


def test_the_first_member_gets_everything(server: VirtualServer) -> None:
    (entry,) = entries(server)
    assert entry.cause.kind is CauseKind.MEMBER_JOINED
    assert (entry.cause.member_id, entry.cause.client_id) == ("a", CALLER.client_id)
    assert (entry.epoch_before, entry.epoch, entry.is_classic) == (1, 2, False)
    assert (entry.moved, entry.converged_ms) == (4, entry.at_ms)
    assert entry.cause.heartbeat_age_ms is None


def test_a_rebalance_ends_when_all_have_their_partitions(server: VirtualServer) -> None:
    server.join("g", "b", ["foo"])
    assert entries(server)[-1].converged_ms is None
    assert entries(server)[-1].moved == 2
    server.advance(100)
    answer = server.beat(server.heartbeat("g", "a", 2))
    server.advance(700)
    server.beat(server.acknowledge_command("g", "a"))
    server.advance(50)
    server.beat(server.heartbeat("g", "b", 3))
    server.settle()
    assert answer is not None
    entry = entries(server)[-1]
    assert (entry.epoch_before, entry.epoch, entry.moved) == (2, 3, 2)
    assert entry.converged_ms == entry.at_ms + 850
    (held,) = entry.held_up
    assert (held.member_id, held.by, held.took_ms) == ("a", HeldUpBy.REVOKING, 700)
    assert held.client_id == CALLER.client_id


def test_members_that_join_together_are_one_entry(server: VirtualServer) -> None:
    for member in "bcd":
        server.submit(server.join_command("g", member, ["foo"]))
    server.settle()
    entry = entries(server)[-1]
    assert (entry.causes, entry.epoch_before, entry.epoch) == (3, 2, 5)


def test_an_epoch_that_another_overtakes_never_converges(server: VirtualServer) -> None:
    server.join("g", "b", ["foo"])
    server.advance(10)
    server.leave("g", "b")
    server.settle()
    server.beat(server.heartbeat("g", "a", 2))
    server.settle()
    _, overtaken, last = entries(server)
    assert overtaken.converged_ms is None
    assert last.cause.kind is CauseKind.MEMBER_LEFT
    assert last.converged_ms is not None


def test_whoever_is_gone_was_silent_before(server: VirtualServer) -> None:
    server.join("g", "b", ["foo"])
    server.advance(3_000)
    leaving = (LeavingMember(MemberId("b"), reason="bye"),)
    server.ask(LeaveGroup(CALLER, G, leaving))
    entry = entries(server)[-1]
    assert (entry.cause.heartbeat_age_ms, entry.cause.reason) == (3_000, "bye")
    server.advance(46_000)
    entry = entries(server)[-1]
    assert entry.cause.kind is CauseKind.SESSION_EXPIRED
    assert entry.cause.heartbeat_age_ms is not None
    assert 45_000 <= entry.cause.heartbeat_age_ms <= 46_000
    assert (entry.moved, entry.converged_ms) == (None, entry.at_ms)


def test_entries_survive_a_restart_and_are_of_their_write(server: VirtualServer) -> None:
    before = entries(server)
    server.join("g", "b", ["foo"])
    server.restart()
    assert entries(server)[:1] == before
    assert [each.epoch for each in entries(server)] == [2, 3]
    server.join("g", "c", ["foo"])
    server.settle()
    assert entries(server)[-1].epoch == 4


def test_entries_of_a_write_that_is_lost_are_lost_with_it(server: VirtualServer) -> None:
    server.submit(server.join_command("g", "b", ["foo"]))
    server.restart()
    assert len(entries(server)) == server.group("g").group_epoch - 1


def test_a_group_that_is_deleted_rebalances_no_more(server: VirtualServer) -> None:
    server.submit(server.join_command("g", "b", ["foo"]))
    server.settle()
    for member in "ab":
        server.leave("g", member)
    server.ask(DeleteGroup(CALLER, G))
    assert G not in server.runtime.parts.ledger.going_on
    assert entries(server)[-1].cause.kind is CauseKind.MEMBER_LEFT
