"""Entries of classic groups: one for each generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from model.commands.classic import (
    ClassicHeartbeat,
    JoinGroup,
    JoinProtocol,
    MemberAssignment,
    SyncGroup,
)
from model.commands.consumer import LeaveGroup, LeavingMember
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId
from model.past.causes import CauseKind
from model.past.rebalances import HeldUpBy, Rebalance
from muster.assignors import embedded
from storage.causes_codec import decode_rebalance
from tests.support.virtual.server import CALLER, VirtualServer

G = GroupId("g")
SUBSCRIPTION = embedded.encode_subscription(embedded.make_subscription(("foo",), None, [], 3), 3)
ASSIGNMENT = embedded.encode_assignment(embedded.Assignment((), None), 3)
SETTINGS = CoordinatorSettings(group_initial_rebalance_delay_ms=0)


def entries(server: VirtualServer) -> list[Rebalance]:
    return [decode_rebalance(key, packed) for key, packed in server.store.causes()]


def make_server() -> VirtualServer:
    return VirtualServer({"foo": 4}, settings=SETTINGS)


def join(server: VirtualServer, member: str, *, is_known: bool = False, reason: str = "") -> None:
    """The request waits until the join phase ends."""
    server.submit(
        JoinGroup(
            CALLER, G, MemberId(member) if is_known else None, MemberId(member),
            10_000, 30_000, "consumer", (JoinProtocol("range", SUBSCRIPTION),),
            requires_member_id=False, reason=reason,
        )
    )  # fmt: skip
    server.advance(1)  # A first join phase ends by its timer.


def assign(*partitions: int) -> bytes:
    """An assignment of partitions of foo."""
    topics = (embedded.TopicPartitions("foo", partitions),)
    return embedded.encode_assignment(embedded.Assignment(topics, None), 3)


def sync(
    server: VirtualServer, generation: int, *members: str, gives: Sequence[bytes] = ()
) -> None:
    """The first of the members is the leader, who ``gives`` each its assignment."""
    given = tuple(
        MemberAssignment(MemberId(each), assignment)
        for each, assignment in zip(members, gives or [ASSIGNMENT] * len(members), strict=True)
    )
    for each in members:
        command = SyncGroup(CALLER, G, MemberId(each), generation, given)
        server.submit(replace(command, assignments=given if each == members[0] else ()))
    server.settle()


def test_the_first_generation() -> None:
    server = make_server()
    join(server, "a", reason="new here")
    server.advance(40)
    assert entries(server) == []
    sync(server, 1, "a")
    (entry,) = entries(server)
    assert (entry.epoch_before, entry.epoch, entry.is_classic) == (0, 1, True)
    assert entry.cause.kind is CauseKind.MEMBER_JOINED
    assert (entry.cause.member_id, entry.cause.client_id) == ("a", CALLER.client_id)
    assert entry.cause.reason == "new here"
    assert (entry.moved, entry.converged_ms) == (0, entry.at_ms + 41)
    (held,) = entry.held_up
    assert (held.member_id, held.by, held.took_ms) == ("a", HeldUpBy.ASSIGNING, 40)


def test_a_member_that_does_not_rejoin_held_the_others_up() -> None:
    server = make_server()
    join(server, "a")
    sync(server, 1, "a")
    join(server, "b")
    for _ in range(4):
        server.advance(8_000)
        server.submit(ClassicHeartbeat(CALLER, G, MemberId("a"), 1))
    sync(server, 2, "b")
    entry = entries(server)[-1]
    assert (entry.epoch_before, entry.epoch) == (1, 2)
    held = entry.held_up[0]
    assert (held.member_id, held.by, held.took_ms) == ("a", HeldUpBy.JOINING, 30_001)
    assert held.client_id == CALLER.client_id


def test_each_generation_has_an_entry_also_one_that_another_overtakes() -> None:
    server = make_server()
    join(server, "a")
    sync(server, 1, "a")
    join(server, "b")
    join(server, "a", is_known=True)
    join(server, "c")
    server.advance(10)
    for each in "ab":
        join(server, each, is_known=True)
    sync(server, 3, "a", "b", "c")
    _, overtaken, last = entries(server)
    assert (overtaken.cause.member_id, overtaken.epoch) == ("b", 2)
    assert overtaken.converged_ms is None
    assert (last.cause.member_id, last.epoch_before, last.epoch) == ("c", 2, 3)
    assert last.converged_ms is not None


def test_what_the_leader_moves_is_counted() -> None:
    server = make_server()
    join(server, "a")
    sync(server, 1, "a", gives=[assign(0, 1, 2, 3)])
    join(server, "b")
    join(server, "a", is_known=True)
    # A rebalance that another overtakes has assigned nothing, and its members have forgotten.
    join(server, "c")
    for each in "ab":
        join(server, each, is_known=True)
    sync(server, 3, "a", "b", "c", gives=[assign(0, 1), assign(2), assign(3)])
    server.ask(LeaveGroup(CALLER, G, (LeavingMember(MemberId("c")),)))
    for each in "ab":
        join(server, each, is_known=True)
    sync(server, 4, "a", "b", gives=[assign(0, 1), assign(2)])
    assert [entry.moved for entry in entries(server)] == [4, None, 2, 1]


def test_what_moves_in_bytes_that_cannot_be_read_is_not_known() -> None:
    server = make_server()
    join(server, "a")
    sync(server, 1, "a", gives=[b"?"])
    assert entries(server)[-1].moved is None


def test_whoever_is_removed_by_an_administrator() -> None:
    server = make_server()
    join(server, "a")
    sync(server, 1, "a")
    server.advance(2_000)
    server.ask(LeaveGroup(CALLER, G, (LeavingMember(MemberId("a"), by_administrator=True),)))
    cause = entries(server)[-1].cause
    assert (cause.kind, cause.member_id) == (CauseKind.ADMINISTRATOR, "a")
    assert cause.heartbeat_age_ms == 2_000


def test_whoever_leaves_or_expires_was_silent_before() -> None:
    server = make_server()
    join(server, "a")
    sync(server, 1, "a")
    join(server, "b")
    join(server, "a", is_known=True)
    sync(server, 2, "a", "b")
    server.advance(4_000)
    server.ask(LeaveGroup(CALLER, G, (LeavingMember(MemberId("b"), reason="bye"),)))
    join(server, "a", is_known=True)
    sync(server, 3, "a")
    left = entries(server)[-1].cause
    assert (left.kind, left.member_id) == (CauseKind.MEMBER_LEFT, "b")
    assert (left.reason, left.heartbeat_age_ms) == ("bye", 4_000)
    server.advance(11_000)
    entry = entries(server)[-1]
    assert (entry.cause.kind, entry.cause.heartbeat_age_ms) == (CauseKind.SESSION_EXPIRED, 10_000)
    assert (entry.epoch, entry.held_up) == (4, ())
    assert G not in server.runtime.parts.ledger.going_on
