"""Commands of the core: with members, topics, partitions, groups and stored offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.core.classic import classic_draft
from coordinator.core.classic.classic_draft import ClassicDraft
from coordinator.core.replay.group_records import replay
from coordinator.core.state.outcome import NoteRebalance, Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.state.steps import run_at_once
from coordinator.dispatch.handle import handle
from model.caller import INTERNAL
from model.commands.classic import JoinGroup, JoinProtocol, MemberAssignment, SyncGroup
from model.commands.consumer import ConsumerGroupLeave, LeaveGroup, LeavingMember
from model.commands.groups import ConsumerGroupDescribe, DeleteGroup, DescribeGroups, ListGroups
from model.commands.offsets import DeleteOffsets, OffsetFetch, TopicOffsets, TopicToFetch
from model.commands.transactions import TxnOffsetCommit, WriteTxnMarkers
from model.ids import GroupId, InstanceId, MemberId, ProducerId, TopicName
from model.log.commit_records import make_offset_columns
from model.log.records import (
    ClassicGroupMember,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    GroupMetadataKey,
    GroupMetadataValue,
    Record,
    TopicPartitions,
)
from model.now import Now
from muster.assignors import embedded
from tests.cost.counting import check_linear
from tests.support.virtual.server import CALLER, VirtualServer

G = GroupId("g")
NOW = Now(1_700_000_000_000, 0)
SUBSCRIPTION = embedded.encode_subscription(embedded.make_subscription(("foo",), None, [], 3), 3)
ASSIGNMENT = embedded.encode_assignment(embedded.Assignment((), None), 3)
PROTOCOLS = (JoinProtocol("range", SUBSCRIPTION),)
Prepare = Callable[[int], Callable[[], Any]]


def shard_of(server: VirtualServer) -> Shard:
    return server.runtime._shard_of(G)


def run(shard: Shard, command: Any) -> Outcome:
    """Handle and replay, as the runtime does."""
    outcome = handle(shard, command, NOW)
    if outcome.slices is not None:
        outcome = run_at_once(outcome.slices)
    for record in outcome.records:
        replay(shard, record)
    if outcome.classic is not None:
        shard.soft.live_classic_groups[G] = outcome.classic
    return outcome


def ids(n: int) -> list[MemberId]:
    return [MemberId(f"m{number:06d}") for number in range(n)]


def make_classic(shard: Shard, n: int) -> None:
    members = tuple(
        ClassicGroupMember(
            own,
            None,
            "c",
            "/127.0.0.1",
            60_000,
            45_000,
            SUBSCRIPTION,
            b"\0\0\0\0\0\0\xff\xff\xff\xff",
        )
        for own in ids(n)
    )
    value = GroupMetadataValue("consumer", 3, "range", MemberId("m000000"), 5, members)
    replay(shard, Record(GroupMetadataKey(G), value))


def join(name: str, instance: str | None = None) -> JoinGroup:
    return JoinGroup(
        CALLER, G, MemberId(name), MemberId("new"), 45_000, 60_000, "consumer", PROTOCOLS,
        None if instance is None else InstanceId(instance),
    )  # fmt: skip


# --------------------------------------------------------------------------------- classic groups


def leave_of_members(n: int) -> Callable[[], Any]:
    shard = shard_of(VirtualServer({"foo": 1}))
    make_classic(shard, n)
    leaving = LeaveGroup(CALLER, G, tuple(LeavingMember(own) for own in ids(n)))
    return lambda: run(shard, leaving)


def leave_of_strangers(n: int) -> Callable[[], Any]:
    shard = shard_of(VirtualServer({"foo": 1}))
    make_classic(shard, n)
    leaving = LeaveGroup(CALLER, G, tuple(LeavingMember(MemberId(f"x{k}")) for k in range(n)))
    return lambda: run(shard, leaving)


def last_join_and_sync(n: int) -> Callable[[], Any]:
    """One join and one sync of a group that is so large."""
    shard = shard_of(VirtualServer({"foo": 1}))
    make_classic(shard, n)
    for own in ids(n)[:-1]:
        run(shard, join(own))

    def work() -> None:
        run(shard, join(ids(n)[-1]))
        group = shard.classic_group(G)
        assert group is not None
        given = tuple(MemberAssignment(own, b"") for own in ids(n))
        run(shard, SyncGroup(CALLER, G, MemberId("m000000"), group.generation, given))

    return work


def upgrade(n: int) -> Callable[[], Any]:
    server = VirtualServer({"foo": n})
    shard = shard_of(server)
    make_classic(shard, n)
    return lambda: run(shard, server.join_command("g", "new", ["foo"]))


def downgrade(n: int) -> Callable[[], Any]:
    server = VirtualServer({"foo": n})
    server.join("g", "last", ["foo"])
    shard, topic_id = shard_of(server), server.topic("foo")
    for number, own in enumerate(ids(n)):
        protocols = (ClassicProtocol("range", SUBSCRIPTION),)
        value = ConsumerGroupMemberMetadataValue(
            None, None, "c", "/127.0.0.1", (TopicName("foo"),), "", 300_000, None,
            ClassicMemberMetadata(45_000, protocols),
        )  # fmt: skip
        replay(shard, Record(ConsumerGroupMemberMetadataKey(G, own), value))
        given = ConsumerGroupTargetAssignmentMemberValue((TopicPartitions(topic_id, (number,)),))
        replay(shard, Record(ConsumerGroupTargetAssignmentMemberKey(G, own), given))
    return lambda: run(shard, ConsumerGroupLeave(INTERNAL, G, MemberId("last"), -1))


# -------------------------------------------------------------------------------- consumer groups


def consumers(n: int) -> VirtualServer:
    server = VirtualServer({"foo": n})
    for own in ids(n):
        server.submit(server.join_command("g", own, ["foo"]))
    server.settle()
    server.advance(10_000)
    return server


def joins(n: int) -> Callable[[], Any]:
    server = VirtualServer({"foo": n})
    commands = [server.join_command("g", own, ["foo"]) for own in ids(n)]

    def work() -> None:
        for command in commands:
            server.submit(command)
        server.settle()

    return work


def leave_by_administrator(n: int) -> Callable[[], Any]:
    server = consumers(n)
    leaving = LeaveGroup(CALLER, G, tuple(LeavingMember(own) for own in ids(n)))
    return lambda: server.ask(leaving)


def expiry(n: int) -> Callable[[], Any]:
    server = consumers(n)
    return lambda: server.advance(60_000)


def describe(n: int) -> Callable[[], Any]:
    server = consumers(n)
    return lambda: server.ask(ConsumerGroupDescribe(CALLER, (G,)))


def describe_of_many(n: int) -> Callable[[], Any]:
    server = VirtualServer({})
    groups = tuple(GroupId(f"g{number}") for number in range(n))

    def work() -> None:
        server.ask(ConsumerGroupDescribe(CALLER, groups))
        server.ask(DescribeGroups(CALLER, groups))

    return work


def names_of_a_subscription(n: int) -> Callable[[], Any]:
    server = VirtualServer({f"t{number}": 1 for number in range(n)})
    command = server.join_command("g", "a", [f"t{number}" for number in range(n)])
    return lambda: server.ask(command)


# --------------------------------------------------------------------------------- stored offsets


def committed(n: int, topics: int = 1) -> VirtualServer:
    server = VirtualServer({f"t{number}": n // topics for number in range(topics)})
    for number in range(topics):
        offsets = dict.fromkeys(range(n // topics), 1)
        server.ask(server.commit_command("g", "", None, f"t{number}", offsets))
    return server


def commit(n: int) -> Callable[[], Any]:
    server = VirtualServer({"t0": n})
    command = server.commit_command("g", "", None, "t0", dict.fromkeys(range(n), 1))
    return lambda: server.ask(command)


def fetch_all(n: int) -> Callable[[], Any]:
    server = committed(n)
    return lambda: server.ask(OffsetFetch(CALLER, G, None))


def fetch_named(n: int) -> Callable[[], Any]:
    server = committed(n, topics=10)
    wanted = tuple(
        TopicToFetch(TopicName(f"t{number}"), None, tuple(range(n // 10))) for number in range(10)
    )
    return lambda: server.ask(OffsetFetch(CALLER, G, wanted))


def delete_group(n: int) -> Callable[[], Any]:
    server = committed(n)
    return lambda: server.ask(DeleteGroup(CALLER, G))


def delete_offsets(n: int) -> Callable[[], Any]:
    server = committed(n)
    command = DeleteOffsets(CALLER, G, ((TopicName("t0"), tuple(range(n))),))
    return lambda: server.ask(command)


def commits_of_a_transaction(n: int) -> Callable[[], Any]:
    """One after another, of a producer of transaction version 1: of its epoch the last marker has
    told, so that nothing is kept of what it has said in the group."""
    server = VirtualServer({"t0": n})
    partition = server.runtime.partition_of(G)
    server.ask(WriteTxnMarkers(CALLER, partition, ProducerId(7), 0, 0, committed=True))
    commands = [
        TxnOffsetCommit(
            CALLER,
            G,
            ProducerId(7),
            0,
            (TopicOffsets(TopicName("t0"), None, make_offset_columns([(number, 1, -1, "")])),),
            MemberId(""),
            None,
        )
        for number in range(n)
    ]

    def work() -> None:
        for command in commands:
            server.submit(command)
        server.settle()

    return work


def list_groups(n: int) -> Callable[[], Any]:
    server = VirtualServer({"t0": 1})
    for number in range(n):
        server.ask(server.commit_command(f"g{number}", "", None, "t0", {0: 1}))
    return lambda: server.ask(ListGroups(CALLER))


def start(n: int) -> Callable[[], Any]:
    server = consumers(n)
    return lambda: server.restart(survivors=1_000)


@pytest.mark.parametrize(
    ("prepare", "n"),
    [
        (leave_of_members, 200),
        (leave_of_strangers, 200),
        (last_join_and_sync, 100),
        (upgrade, 100),
        (downgrade, 100),
        (joins, 50),
        (leave_by_administrator, 50),
        (expiry, 50),
        (describe, 50),
        (describe_of_many, 200),
        (names_of_a_subscription, 100),
        (commit, 500),
        (fetch_all, 1_000),
        (fetch_named, 2_500),
        (delete_group, 1_000),
        (delete_offsets, 1_000),
        (commits_of_a_transaction, 250),
        (list_groups, 100),
        (start, 50),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_cost_is_linear(prepare: Prepare, n: int) -> None:
    check_linear(prepare, n)


# ------------------------------------------------------------------------- what calls do not show


def test_a_leave_of_very_many_copies_the_group_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: for each that leaves the sets of ids were copied, which is one call, however large."""
    copies = 0
    value = ClassicDraft.value

    def note(draft: ClassicDraft) -> Any:
        nonlocal copies
        copies += 1
        return value(draft)

    monkeypatch.setattr(ClassicDraft, "value", note)
    leave_of_strangers(100)()
    assert copies == 0
    leave_of_members(100)()
    assert copies <= 2


def test_the_next_leader_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: of members that go in their order each is the leader, and the first of a dict of which
    very many have gone is looked for behind all of them."""
    looks = 0

    class Members(dict[Any, Any]):
        def __iter__(self) -> Any:
            nonlocal looks
            looks += 1
            return super().__iter__()

    monkeypatch.setattr(classic_draft, "dict", Members, raising=False)
    shard = shard_of(VirtualServer({"foo": 1}))
    make_classic(shard, 100)
    leaving = LeaveGroup(CALLER, G, tuple(LeavingMember(own) for own in ids(100)[:50]))
    run(shard, leaving)
    group = shard.classic_group(G)
    assert group is not None
    assert group.leader == "m000050"
    assert looks <= 3


def test_a_refused_upgrade_reads_members_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bug: each heartbeat that would have upgraded it decoded all that members had said."""
    server = VirtualServer({"foo": 1})
    shard = shard_of(server)
    junk = ClassicGroupMember(MemberId("k"), None, "c", "/1", 1, 1, SUBSCRIPTION, b"\0\0\0")
    value = GroupMetadataValue("consumer", 3, "range", MemberId("k"), 5, (junk,))
    replay(shard, Record(GroupMetadataKey(G), value))
    decoded = 0
    decode = embedded.decode_subscription

    def note(data: bytes) -> Any:
        nonlocal decoded
        decoded += 1
        return decode(data)

    monkeypatch.setattr("translator.readiness.decode_subscription", note)
    for _ in range(5):
        answer = server.ask(server.join_command("g", "n", ["foo"]))
        assert "cannot be upgraded" in str(answer)
    assert decoded == 1


def test_a_member_of_very_many_topics_is_not_even_read(monkeypatch: pytest.MonkeyPatch) -> None:
    names = tuple(f"t{number}" for number in range(10_001))
    said = embedded.encode_subscription(embedded.make_subscription(names, None, [], 3), 3)
    server = VirtualServer({"foo": 1})
    many = ClassicGroupMember(MemberId("k"), None, "c", "/1", 1, 1, said, b"")
    value = GroupMetadataValue("consumer", 3, "range", MemberId("k"), 5, (many,))
    replay(shard_of(server), Record(GroupMetadataKey(G), value))

    def fail(data: bytes) -> Any:
        raise AssertionError("it is decoded")

    monkeypatch.setattr("translator.readiness.decode_subscription", fail)
    answer = server.ask(server.join_command("g", "n", ["foo"]))
    assert "a member subscribes to 10001 topics, more than 10000 (client c)" in str(answer)


def test_a_line_of_the_log_is_bounded_whatever_reasons_clients_give() -> None:
    shard = shard_of(VirtualServer({"foo": 1}))
    make_classic(shard, 100)
    gone = tuple(LeavingMember(own, reason="x" * 30_000) for own in ids(50))
    outcome = run(shard, LeaveGroup(CALLER, G, gone))
    (noted,) = (effect for effect in outcome.effects if isinstance(effect, NoteRebalance))
    assert len(noted.reason) <= classic_draft.REASON_MAX_CHARS + 3
