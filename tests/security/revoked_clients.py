"""Clients of each kind whose rights are revoked."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import grpc
import grpc.aio

from cli.load.members.classic_assignment import encode_subscription
from muster.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    classic_pb2,
    classic_pb2_grpc,
    group_pb2,
    group_pb2_grpc,
    types_pb2,
)
from storage.codec.batch_encoding import encode_batch
from tests.security import revoked_members as members
from tests.security.revoked_case import Ask, Case, is_refusal
from tests.support.service import session_client as session
from tests.support.wire.fields import commit, join

PRODUCE, FETCH, COMMIT, OFFSETS, JOIN = 0, 1, 8, 9, 11
DESCRIBE, LIST, HEARTBEAT, CONSUMERS = 15, 16, 68, 69
PARTITIONS: Final = 12

# ---------------------------------------------------------------------------------------- commits


async def commits(case: Case, group: str, partitions: int, **who: Any) -> Ask:
    """Commits that repeat: from the connection's template, by a member or not."""
    client = await case.connect()
    offset = 0
    if "member_id" in who:
        epoch = await members.join_consumer(case, client, group, who["member_id"])
        who["generation_id_or_member_epoch"] = epoch

    async def ask() -> bool:
        nonlocal offset
        offset += 1
        rows = dict.fromkeys(range(partitions), offset)
        fields = commit(case.group(group), case.topic, rows)
        answer = await client.ask(COMMIT, 9, **{"generation_id_or_member_epoch": -1} | fields | who)
        granted = [case.is_granted(row.error_code) for row in answer.topics[0].partitions]
        assert len(set(granted)) == 1
        if granted[0]:
            case.acknowledge(case.group(group), rows)
        return granted[0]

    return ask


async def commits_of_one(case: Case) -> Ask:
    return await commits(case, "one", 1)


async def commits_of_many(case: Case) -> Ask:
    return await commits(case, "many", PARTITIONS)


async def commits_of_member(case: Case) -> Ask:
    return await commits(case, "member", 1, member_id="m")


async def commits_of_rows(case: Case) -> Ask:
    """Too few partitions for a template: decoded each time."""
    return await commits(case, "rows", 3)


# ------------------------------------------------------------------------------------------- gRPC


def _grant(case: Case, error: types_pb2.Error, *failures: types_pb2.TopicFailures) -> bool:
    codes = {error.error_code} | {
        row.error.error_code for topic in failures for row in topic.partitions
    }
    if case.code in codes:
        return False
    assert codes <= {0}, (error, failures)
    return True


def _offsets(case: Case, offset: int) -> list[types_pb2.TopicOffsets]:
    row = types_pb2.PartitionOffset(partition=0, offset=offset)
    return [types_pb2.TopicOffsets(topic_name=case.topic, partitions=[row])]


async def unary(case: Case) -> Ask:
    """Heartbeats over gRPC that claim nothing, so that each answer has an assignment."""
    stub = group_pb2_grpc.GroupServiceStub(case.channel)
    who = {"group_id": case.group("unary"), "member_id": "m"}
    wanted = group_pb2.Subscription(subscribed_topic_names=[case.topic])
    answer = await stub.Heartbeat(
        group_pb2.HeartbeatRequest(
            **who, subscription=wanted, owned=types_pb2.PartitionSet(), rebalance_timeout_ms=60_000
        )
    )
    epoch = answer.member_epoch

    async def ask() -> bool:
        nonlocal epoch
        request = group_pb2.HeartbeatRequest(
            **who, member_epoch=epoch, owned=types_pb2.PartitionSet()
        )
        answer = await stub.Heartbeat(request)
        epoch = answer.member_epoch or epoch
        return _grant(case, answer.error) or answer.HasField("assignment")

    return ask


async def unary_commits(case: Case) -> Ask:
    stub = group_pb2_grpc.GroupServiceStub(case.channel)
    offset = 0

    async def ask() -> bool:
        nonlocal offset
        offset += 1
        group = case.group("unary-commits")
        request = group_pb2.CommitOffsetsRequest(group_id=group, topics=_offsets(case, offset))
        answer = await stub.CommitOffsets(request)
        granted = _grant(case, answer.error, *answer.failures)
        if granted:
            case.acknowledge(group, {0: offset})
        return granted

    return ask


async def join_session(case: Case, group: str) -> tuple[session.SessionClient, int]:
    client = session.SessionClient(group_pb2_grpc.GroupServiceStub(case.channel))
    group_id = case.group(group)
    await client.send(session.join("m", topics=[case.topic], group_id=group_id))
    answer = await client.expect("assignment", "m")
    while not answer.assignment.topics:
        answer = await client.expect("assignment", "m")
    topics = answer.assignment.topics
    await client.send(session.acknowledge("m", answer, topics, group_id))
    return client, answer.member_epoch


async def session_commits(case: Case) -> Ask:
    """Commits on a session, whose member is fenced before the first refusal."""
    client, epoch = await join_session(case, "session")
    offset = 0

    async def ask() -> bool:
        nonlocal offset
        offset += 1
        is_late, group_id = case.is_revoked, case.group("session")
        await client.send(
            session.commit(
                "m",
                epoch,
                {0: offset},
                topic=case.topic,
                group_id=group_id,
                correlation_id=offset,
            )
        )
        while True:
            update = await client.next_update()
            kind = update.WhichOneof("update")
            if kind == "commit_result":
                result = update.commit_result
                if result.error.reason == "UNKNOWN_MEMBER_ID":
                    return False
                granted = _grant(case, result.error, *result.failures)
                if granted:
                    case.acknowledge(group_id, {0: offset})
                return granted
            if kind == "fenced":
                assert update.fenced.error.error_code == case.code
            elif is_late:
                return True

    return ask


async def pushed_session(case: Case) -> Ask:
    """A silent member of a session, to which a new assignment would be pushed."""
    client, _ = await join_session(case, "pushed")

    async def end() -> bool:
        fields = join(case.group("pushed"), "keeps", (case.topic,))
        assert (await case.safe.ask(HEARTBEAT, 1, **fields)).error_code == 0
        update = await client.next_update()
        return update.WhichOneof("update") != "fenced"

    return end


async def classic_over_grpc(case: Case) -> Ask:
    """A JoinGroup over gRPC that waits for a member which keeps its rights."""
    stub = classic_pb2_grpc.ClassicServiceStub(case.channel)
    first = await members.join_classic(case, case.safe, "grpc-joining")
    request = classic_pb2.JoinGroupRequest(
        group_id=case.group("grpc-joining"),
        session_timeout_ms=20_000,
        rebalance_timeout_ms=20_000,
        protocol_type="consumer",
        protocols=[
            classic_pb2.GroupProtocol(name="range", metadata=encode_subscription(case.topic))
        ],
    )
    named = await stub.JoinGroup(request)
    request.member_id = named.member_id
    asked = asyncio.ensure_future(stub.JoinGroup(request))
    await members.hear_rebalance(case, "grpc-joining", first)

    async def end() -> bool:
        fields = members.join_fields(case, "grpc-joining", first.member_id)
        assert (await case.safe.ask(JOIN, 3, **fields)).error_code == 0
        answer = await asked
        return _grant(case, answer.error) or bool(answer.members)

    return end


# ------------------------------------------------------------------------------ who looks at groups


async def describes_consumers(case: Case) -> Ask:
    client = await case.connect()

    async def ask() -> bool:
        answer = await client.ask(CONSUMERS, 1, group_ids=[case.group("steady")])
        group = answer.groups[0]
        assert bool(group.members) == (group.error_code == 0)
        return case.is_granted(group.error_code)

    return ask


async def describes_over_grpc(case: Case) -> Ask:
    stub = admin_pb2_grpc.AdminServiceStub(case.channel)

    async def ask() -> bool:
        try:
            await stub.DescribeGroup(admin_pb2.DescribeGroupRequest(group_id=case.group("steady")))
        except grpc.aio.AioRpcError as error:
            return error.code() is not grpc.StatusCode.PERMISSION_DENIED
        return True

    return ask


async def fetches_offsets(case: Case) -> Ask:
    client = await case.connect()
    wanted = {"name": case.topic, "partition_indexes": [0]}

    async def ask() -> bool:
        group = {"group_id": case.group("steady"), "topics": [wanted], "member_epoch": -1}
        (found,) = (await client.ask(OFFSETS, 9, groups=[group])).groups
        rows = [row for topic in found.topics for row in topic.partitions]
        return not any(is_refusal(each.error_code) for each in (found, *rows))

    return ask


async def fetches_offsets_over_grpc(case: Case) -> Ask:
    stub = group_pb2_grpc.GroupServiceStub(case.channel)
    wanted = types_pb2.TopicPartitions(topic_name=case.topic, partitions=[0])

    async def ask() -> bool:
        request = group_pb2.FetchOffsetsRequest(group_id=case.group("steady"))
        request.partitions.topics.append(wanted)
        answer = await stub.FetchOffsets(request)
        codes = [row.error.error_code for topic in answer.topics for row in topic.partitions]
        return not (is_refusal(answer.error.error_code) or any(map(is_refusal, codes)))

    return ask


async def lists_groups(case: Case) -> Ask:
    client = await case.connect()

    async def ask() -> bool:
        answer = await client.ask(LIST, 4)
        return case.group("steady") in {group.group_id for group in answer.groups}

    return ask


async def describes_classic(case: Case) -> Ask:
    client = await case.connect()

    async def ask() -> bool:
        answer = await client.ask(DESCRIBE, 5, groups=[case.group("classic")])
        return case.is_granted(answer.groups[0].error_code)

    return ask


async def wait_for_records(case: Case) -> Ask:
    """A Fetch that waits for records, which come when it may not read them any more."""
    client = await case.connect()
    row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    sent = client.send(
        FETCH,
        11,
        replica_id=-1,
        max_wait=20_000,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[{"topic": case.topic, "partitions": [row]}],
        forgotten_topics_data=[],
        rack_id="",
    )

    async def end() -> bool:
        await produce(case)
        correlation, answer = await client.read(FETCH, 11)
        assert correlation == sent
        (found,) = answer.responses[0].partitions
        return case.is_granted(found.error_code) or bool(found.records)

    return end


async def produce(case: Case) -> None:
    """One record, by a client that keeps its rights."""
    records = encode_batch(0, [(b"k", b"secret")], 1_700_000_000_000, leader_epoch=-1)
    answer = await case.safe.ask(
        0,
        9,
        transactional_id=None,
        acks=-1,
        timeout=5_000,
        topic_data=[{"name": case.topic, "partition_data": [{"index": 0, "records": records}]}],
    )
    assert answer.responses[0].partition_responses[0].error_code == 0


# -------------------------------------------------------------------------------------- all kinds

FOR_BOTH: Final = (
    ("steady heartbeats", members.steady),
    ("heartbeats for an assignment", members.grasping),
    ("kept commits of one partition", commits_of_one),
    ("kept commits of many partitions", commits_of_many),
    ("kept commits of a member", commits_of_member),
    ("decoded commits", commits_of_rows),
    ("unary heartbeats", unary),
    ("unary commits", unary_commits),
    ("commits on a session", session_commits),
    ("ConsumerGroupDescribe", describes_consumers),
    ("AdminService.DescribeGroup", describes_over_grpc),
    ("OffsetFetch", fetches_offsets),
    ("FetchOffsets", fetches_offsets_over_grpc),
)
FOR_GROUP: Final = (
    *FOR_BOTH,
    ("classic member", members.classic),
    ("classic member of a consumer group", members.mixed),
    ("ListGroups", lists_groups),
    ("DescribeGroups", describes_classic),
)
WAIT_FOR_TOPIC: Final = (
    ("push to a session", pushed_session),
    ("waiting Fetch", wait_for_records),
    ("held heartbeat", members.hold_heartbeat),
)
WAIT_FOR_GROUP: Final = (
    ("push to a session", pushed_session),
    ("waiting JoinGroup", members.wait_for_join),
    ("waiting SyncGroup", members.wait_for_sync),
    ("waiting JoinGroup over gRPC", classic_over_grpc),
    ("held heartbeat", members.hold_heartbeat),
)
