"""What was going on in a log partition that is stopped ends, and is not tried again and again."""

from __future__ import annotations

import pytest

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.runtime.commands import stopped_shards
from model.caller import INTERNAL
from model.commands.classic import JoinGroup, JoinProtocol
from model.commands.explain import ExplainRebalances
from model.commands.offset_changes import ListOffsetChanges
from model.commands.topics import DeleteTopic
from model.commands.transactions import AbortTransaction, TxnOffsetCommit
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode
from model.ids import GroupId, LogPartition, MemberId, ProducerId, TopicName
from model.log.records import (
    AssignedTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    MemberState,
)
from model.past.rebalances import EndedRebalance
from model.responses.explain import ExplainGroupResponse
from model.responses.offset_changes import ListOffsetChangesResponse
from muster.assignors import embedded
from storage.codec.record_codec import encode_key, encode_value
from tests.support.storage.appends import append, mark_all
from tests.support.virtual.server import CALLER, VirtualServer, error_name

SUBSCRIPTION = embedded.encode_subscription(embedded.make_subscription(("t",), None, [], 3), 3)
RETRIABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE.name
DAY_MS = 86_400_000


class GuardedServer(VirtualServer):
    """Keeps the evidence; counts the commands of each kind that reach the runtime."""

    def __init__(self, settings: CoordinatorSettings | None = None, partitions: int = 1) -> None:
        self.evidence: list[tuple[LogPartition, str]] = []
        super().__init__({"t": 2}, settings=settings, partitions=partitions)

    def keep_evidence(self, partition: LogPartition, evidence: str) -> None:
        self.evidence.append((partition, evidence))

    def stop_shard(self) -> None:
        """Flip a bit in the state of a group, and let a member join it."""
        self.join("g", "m1", ("t",))
        damage(self.group("g"))
        assert error_name(self.ask(self.join_command("g", "m2", ("t",)))) == RETRIABLE
        self.settle()
        assert len(self.evidence) == 1


def damage(group: ConsumerGroup) -> None:
    group.target_epoch ^= 1 << 20


@pytest.fixture
def server() -> GuardedServer:
    return GuardedServer()


def join_classic(member: str) -> JoinGroup:
    protocols = (JoinProtocol("range", SUBSCRIPTION),)
    return JoinGroup(
        CALLER, GroupId("classic"), None, MemberId(member), 10_000, 60_000, "consumer", protocols,
        requires_member_id=False,
    )  # fmt: skip


def test_requests_that_wait_are_answered(server: GuardedServer) -> None:
    waits = server.submit(join_classic("c1"))
    server.settle()
    assert not waits.is_answered, "it waits for members that join soon"
    server.stop_shard()
    assert error_name(waits.answer) == RETRIABLE


def test_the_ledger_is_still_told(server: GuardedServer) -> None:
    server.stop_shard()
    group_id = GroupId("g")
    told = server.ask(ExplainRebalances(CALLER, group_id, 0, None, 9))
    assert isinstance(told, ExplainGroupResponse)
    (first,) = told.rebalances
    assert isinstance(first, EndedRebalance)
    assert first.rebalance.cause.member_id == "m1"
    changes = server.ask(ListOffsetChanges(CALLER, group_id, None, 9))
    assert isinstance(changes, ListOffsetChangesResponse)
    assert not changes.changes


def test_no_member_expires(server: GuardedServer) -> None:
    server.submit(join_classic("c1"))
    server.join("other", "m1", ("t",))
    server.stop_shard()
    counted = dict(server.runtime.stats.commands)
    server.advance(DAY_MS)
    assert not sum(server.runtime.stats.members_expired.values())
    assert server.runtime.stats.commands == counted
    assert server.runtime.liveness.next_deadline_ms() is None


def test_offsets_of_a_deleted_topic_are_left_to_the_next_start(server: GuardedServer) -> None:
    server.ask(server.commit_command("offsets", "", None, "t", {0: 5}))
    server.stop_shard()
    server.ask(DeleteTopic(INTERNAL, TopicName("t")))
    server.advance(60_000)
    counted = dict(server.runtime.stats.commands)
    server.advance(DAY_MS)
    assert server.runtime.stats.commands == counted
    server.restart(survivors=1_000)
    server.advance(60_000)
    server.create("t", 2)
    assert server.fetch("offsets", "t", 0) == -1


def pend(server: VirtualServer, group: str, producer: int) -> TxnOffsetCommit:
    offsets = server.commit_command(group, "", None, "t", {0: 5}).topics
    return TxnOffsetCommit(CALLER, GroupId(group), ProducerId(producer), 0, offsets)


def test_transactions_of_other_log_partitions_time_out() -> None:
    server = GuardedServer(CoordinatorSettings(transaction_max_timeout_ms=60_000), partitions=2)
    place = server.runtime.partition_of
    other = next(name for name in "abcdefg" if place(GroupId(name)) != place(GroupId("g")))
    for group, producer in (("g", 1), (other, 2)):
        assert error_name(server.ask(pend(server, group, producer))) == "NONE"
    server.stop_shard()
    server.advance(10 * 60_000)
    assert server.runtime.stats.transactions_timed_out == 1
    assert server.runtime.stats.commands[AbortTransaction.__name__] == 1
    assert [bool(shard.open_transactions) for shard in server.runtime.shards] == [
        shard.soft.is_stopped for shard in server.runtime.shards
    ]


def test_a_state_that_cannot_be_checked_stops_the_shard(
    server: GuardedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.join("g", "m1", ("t",))
    member = server.group("g").member(MemberId("m1"))
    assert member is not None
    member.assigned.append(7_000)
    monkeypatch.setattr(stopped_shards, "find_violation", lambda *_: member.assigned[3])
    assert error_name(server.leave("g", "m1")) == RETRIABLE
    server.settle()
    ((_, evidence),) = server.evidence
    assert evidence.startswith("invariant not_checked: IndexError(")
    assert "m1: epoch 2, STABLE, assigned numbers [0, 1, 7000]" in evidence


def test_an_owner_that_is_noted_wrongly_is_found(server: GuardedServer) -> None:
    server.join("g", "m1", ("t",))
    server.beat(server.acknowledge_command("g", "m1"))
    server.join("g", "m2", ("t",))
    server.group("g").owner[0] = -1
    assert error_name(server.ask(server.acknowledge_command("g", "m1"))) == RETRIABLE
    ((_, evidence),) = server.evidence
    assert evidence.startswith("invariant one_owner: something that m1 has is noted as another's")


def write_second_owner(server: GuardedServer) -> None:
    """A log that another server wrote has two owners of a partition."""
    group, member = GroupId("g"), MemberId("m2")
    topics = (AssignedTopicPartitions(server.topic("t"), (0,), (1,)),)
    current = ConsumerGroupCurrentMemberAssignmentValue(1, 1, MemberState.STABLE, topics, ())
    metadata = server.group("g").entries[MemberId("m1")].metadata
    assert metadata is not None
    keys = (
        ConsumerGroupMemberMetadataKey(group, member),
        ConsumerGroupCurrentMemberAssignmentKey(group, member),
    )
    values = (metadata, current)
    pairs = [(encode_key(k), encode_value(v)) for k, v in zip(keys, values, strict=True)]
    append(server.store, {0: list(pairs)})
    mark_all(server.store)


def test_what_was_wrong_in_a_log_stops_nothing(server: GuardedServer) -> None:
    server.join("g", "m1", ("t",))
    server.beat(server.acknowledge_command("g", "m1"))
    server.crash()
    write_second_owner(server)
    server.start()
    assert server.runtime.shards[0].soft.unsound_groups == {"g"}
    server.join("g", "m3", ("t",))
    for member in ("m1", "m2"):
        server.beat(server.acknowledge_command("g", member))
    for member in ("m1", "m2", "m3"):
        assert error_name(server.leave("g", member)) == "NONE"
    assert not server.evidence
