"""Unary requests that a connection delayed are not carried out after later ones."""

from __future__ import annotations

from coordinator.service.calls import sequences as sequences_module
from coordinator.service.calls.sequences import Sequences
from coordinator.service.streams.sessions import MemberKey
from model.access.acls import Operation, ResourceType
from model.ids import GroupId, MemberId
from muster.v1 import classic_pb2, group_pb2, types_pb2
from tests.support.authorizers import Rights
from tests.support.service.session_client import GROUP, SessionClient
from tests.support.service.stand import Stand, running_stand

KEY: MemberKey = (GroupId("g"), MemberId("m"))


def test_a_lower_number_is_late() -> None:
    sequences = Sequences()
    assert [sequences.note(KEY, number) is not None for number in (1, 3, 2, 3, 4)] == [
        True,
        True,
        False,
        True,
        True,
    ]
    assert sequences.note((KEY[0], MemberId("other")), 1)


def test_who_gives_no_number_is_not_judged() -> None:
    sequences = Sequences()
    assert sequences.note(KEY, 5)
    assert sequences.note(KEY, 0)
    assert not sequences.note(KEY, 4)


def test_a_bounded_number_of_members_is_remembered() -> None:
    sequences = Sequences()
    for number in range(sequences_module.MEMBERS_MAX + 10):
        sequences.note((KEY[0], MemberId(f"m{number}")), 1)
    assert len(sequences._highest) == sequences_module.MEMBERS_MAX
    assert sequences.note((KEY[0], MemberId("m0")), 1)


def test_what_is_kept_of_a_member_does_not_grow_with_its_ids() -> None:
    sequences = Sequences()
    long = GroupId("g" * 32_767), MemberId("m" * 32_767)
    assert sequences.note(long, 2)
    assert not sequences.note(long, 1)
    assert [len(kept) for kept in sequences._highest] == [16]


def test_what_was_refused_counts_as_if_it_had_not_come() -> None:
    sequences = Sequences()
    first = sequences.note(KEY, 2)
    refused = sequences.note(KEY, 2**62)
    assert first is not None
    assert refused is not None
    sequences.withdraw(refused)
    assert sequences.note(KEY, 3)
    sequences.withdraw(first)
    assert not sequences.note(KEY, 2), "what came since stays"


async def test_a_commit_at_a_wrong_epoch_stops_no_later_one(stand: Stand) -> None:
    joined = await SessionClient(stand.group_stub()).join("m1")

    async def commit(epoch: int, sequence: int) -> str:
        partition = types_pb2.PartitionOffset(partition=0, offset=sequence % 100)
        topic = types_pb2.TopicOffsets(topic_name="orders", partitions=[partition])
        response = await stand.group_stub().CommitOffsets(
            group_pb2.CommitOffsetsRequest(
                group_id=GROUP,
                member_id="m1",
                member_epoch=epoch,
                topics=[topic],
                sequence=sequence,
            )
        )
        reason: str = response.error.reason
        return reason

    assert await commit(joined.member_epoch, 1) == ""
    assert await commit(joined.member_epoch + 50, 2**62) == "STALE_MEMBER_EPOCH"
    assert await commit(joined.member_epoch, 2) == ""


async def test_a_commit_of_which_nothing_is_taken_stops_no_later_one(stand: Stand) -> None:
    """Otherwise a client that may not commit as the member could block its commits for good."""
    joined = await SessionClient(stand.group_stub()).join("m1")

    async def commit(
        topic: str, epoch: int, sequence: int, partition: int = 0
    ) -> group_pb2.CommitOffsetsResponse:
        offset = types_pb2.PartitionOffset(partition=partition, offset=1)
        return await stand.group_stub().CommitOffsets(
            group_pb2.CommitOffsetsRequest(
                group_id=GROUP,
                member_id="m1",
                member_epoch=epoch,
                topics=[types_pb2.TopicOffsets(topic_name=topic, partitions=[offset])],
                sequence=sequence,
            )
        )

    assert not (await commit("orders", joined.member_epoch, 1)).failures
    assert (await commit("nowhere", 99, 2**62)).failures
    assert (await commit("orders", 99, 2**62, partition=7)).failures
    own = await commit("orders", joined.member_epoch, 2)
    assert not own.failures
    assert own.error.reason == ""


async def test_a_commit_that_comes_late_is_refused(stand: Stand) -> None:
    client, stub = SessionClient(stand.group_stub()), stand.group_stub()
    joined = await client.join("m1")

    async def commit(offset: int, sequence: int) -> str:
        partition = types_pb2.PartitionOffset(partition=0, offset=offset)
        topic = types_pb2.TopicOffsets(topic_name="orders", partitions=[partition])
        response = await stub.CommitOffsets(
            group_pb2.CommitOffsetsRequest(
                group_id=GROUP,
                member_id="m1",
                member_epoch=joined.member_epoch,
                topics=[topic],
                sequence=sequence,
            )
        )
        reason: str = response.error.reason
        return reason

    assert await commit(10, 2) == ""
    assert await commit(5, 1) == "COORDINATOR_NOT_AVAILABLE"
    wanted = types_pb2.TopicPartitions(topic_name="orders", partitions=[0])
    response = await stub.FetchOffsets(
        group_pb2.FetchOffsetsRequest(
            group_id=GROUP, partitions=types_pb2.PartitionSet(topics=[wanted])
        )
    )
    assert response.topics[0].partitions[0].offset == 10
    assert await commit(11, 3) == ""


async def test_who_may_not_read_the_group_stops_no_commits_of_its_members() -> None:
    rights = Rights()
    async with running_stand(authorizer=rights) as stand:
        joined = await SessionClient(stand.group_stub()).join("m1")

        async def commit(sequence: int) -> str:
            partition = types_pb2.PartitionOffset(partition=0, offset=sequence)
            topic = types_pb2.TopicOffsets(topic_name="orders", partitions=[partition])
            response = await stand.group_stub().CommitOffsets(
                group_pb2.CommitOffsetsRequest(
                    group_id=GROUP,
                    member_id="m1",
                    member_epoch=joined.member_epoch,
                    topics=[topic],
                    sequence=sequence,
                )
            )
            reason: str = response.error.reason
            return reason

        rights.denied = {(Operation.READ, ResourceType.GROUP, GROUP)}
        assert await commit(2**62) == "GROUP_AUTHORIZATION_FAILED"
        rights.denied = set()
        assert await commit(1) == ""


async def test_a_join_that_comes_late_is_refused(stand: Stand) -> None:
    stub = stand.classic_stub()

    async def join(
        member_id: str, sequence: int, protocol_type: str = "consumer"
    ) -> classic_pb2.JoinGroupResponse:
        return await stub.JoinGroup(
            classic_pb2.JoinGroupRequest(
                group_id="classic",
                member_id=member_id,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type=protocol_type,
                protocols=[classic_pb2.GroupProtocol(name="range", metadata=b"")],
                sequence=sequence,
            )
        )

    member_id = (await join("", 1)).member_id
    joined = await join(member_id, 3)
    assert joined.generation == 1
    late = await join(member_id, 2)
    assert late.error.reason == "COORDINATOR_NOT_AVAILABLE"
    assert not (await join(member_id, 4)).HasField("error")
    refused = await join(member_id, 2**62, protocol_type="another")
    assert refused.error.reason == "INCONSISTENT_GROUP_PROTOCOL"
    assert not (await join(member_id, 5)).HasField("error"), "what was refused stops none"


async def test_a_late_first_join_of_a_static_member_does_not_fence_it(stand: Stand) -> None:
    """Another process with the same instance id replaces the static member, as always."""
    stub = stand.classic_stub()

    async def join(sequence: int, incarnation: int) -> classic_pb2.JoinGroupResponse:
        return await stub.JoinGroup(
            classic_pb2.JoinGroupRequest(
                group_id="classic",
                instance_id="i",
                session_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[classic_pb2.GroupProtocol(name="range", metadata=b"")],
                sequence=sequence,
                incarnation=incarnation,
            )
        )

    async def beat(member: classic_pb2.JoinGroupResponse) -> str:
        request = classic_pb2.ClassicHeartbeatRequest(
            group_id="classic",
            member_id=member.member_id,
            instance_id="i",
            generation=member.generation,
        )
        return (await stub.Heartbeat(request)).error.reason

    live = await join(2, incarnation=7)
    assert (await join(1, incarnation=7)).error.reason == "COORDINATOR_NOT_AVAILABLE"
    assert await beat(live) != "FENCED_INSTANCE_ID"
    assert not (await join(1, incarnation=9)).HasField("error")
    assert await beat(live) == "FENCED_INSTANCE_ID"


async def test_a_member_that_was_put_out_is_told_so_whatever_number_was_said(stand: Stand) -> None:
    """It must join with a new id. Another client may have sent a number that it never reaches."""
    stub = stand.classic_stub()

    async def join(member_id: str, sequence: int) -> classic_pb2.JoinGroupResponse:
        return await stub.JoinGroup(
            classic_pb2.JoinGroupRequest(
                group_id="classic",
                member_id=member_id,
                session_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[classic_pb2.GroupProtocol(name="range", metadata=b"")],
                sequence=sequence,
            )
        )

    member_id = (await join("", 1)).member_id
    await join(member_id, 2**62)
    assert (await join(member_id, 2)).error.reason == "COORDINATOR_NOT_AVAILABLE"
    leaving = classic_pb2.LeavingMember(member_id=member_id)
    await stub.LeaveGroup(classic_pb2.LeaveGroupRequest(group_id="classic", members=[leaving]))
    assert (await join(member_id, 3)).error.reason == "UNKNOWN_MEMBER_ID"
