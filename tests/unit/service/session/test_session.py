"""GroupService.Session against a real coordinator, by a client that does as it is told."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc.aio
import pytest

from coordinator.service.session.session import Session
from coordinator.service.settings import GrpcSettings
from model.access.acls import Operation, ResourceType
from model.caller import Caller
from model.commands.consumer import ConsumerGroupHeartbeat
from model.errors import ErrorCode
from model.ids import GroupId, MemberId
from muster.v1 import group_pb2, types_pb2
from tests.support.authorizers import Rights
from tests.support.service.session_client import (
    GROUP,
    SessionClient,
    acknowledge,
    commit,
    end_status,
    join,
    leave,
    only,
    partitions_of,
)
from tests.support.service.stand import Stand, running_stand
from tests.support.waiting import until


def watches(stand: Stand) -> int:
    return len(stand.runtime.parts.watches)


async def test_a_lone_join_is_answered_with_all_partitions(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    assignment = await client.join("m1", client_id="app-1")
    assert partitions_of(assignment) == {0, 1, 2, 3}
    assert assignment.assignment.topics[0].topic_name == "orders"
    assert assignment.member_epoch == 2
    assert (assignment.heartbeat_interval_ms, assignment.session_timeout_ms) == (7_500, 45_000)
    member = (await stand.members(GROUP))["m1"]
    assert (member.client_id, member.client_host) == ("app-1", "/127.0.0.1")
    assert member.member_epoch == 2


async def test_a_partition_moves_only_when_its_owner_has_given_it_up(stand: Stand) -> None:
    first, second = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
    await first.settle("m1", await first.join("m1"))
    joined = await second.join("m2")
    assert partitions_of(joined) == set()
    await second.settle("m2", joined)

    shrunk = await first.expect("assignment", "m1")
    kept = partitions_of(shrunk)
    assert len(kept) == 2
    # Still at it: nothing may move yet, however often the client says so.
    await first.send(acknowledge("m1", shrunk, None))
    await first.send(acknowledge("m1", shrunk, only(shrunk, {0, 1, 2, 3})))
    await first.send(commit("m1", 2, {0: 1}))
    assert not (await first.expect("commit_result")).HasField("error")
    assert not (await stand.members(GROUP))["m2"].assignment

    await first.send(acknowledge("m1", shrunk, only(shrunk, kept)))
    granted = await second.expect("assignment", "m2")
    assert partitions_of(granted) == {0, 1, 2, 3} - kept
    epoch_only = await first.expect("assignment", "m1")
    assert epoch_only.member_epoch == granted.member_epoch == 3


async def test_an_assignment_that_did_not_change_is_left_out(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    await client.settle("m1", await client.join("m1"))
    other = SessionClient(stand.group_stub())
    joined = await other.join("m2", topics=["elsewhere"])
    assert partitions_of(joined) == set()
    told = await client.expect("assignment", "m1")
    assert told.member_epoch == 3
    assert not told.HasField("assignment")


async def test_members_of_several_groups_share_a_stream(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    await client.send(*(join(f"m{n}", group_id=f"g{n}") for n in range(5)))
    told = {(update := await client.next_update()).group_id: update for _ in range(5)}
    assert {partitions_of(update.assignment) == {0, 1, 2, 3} for update in told.values()} == {True}
    assert set(told) == {f"g{n}" for n in range(5)}


async def test_news_of_while_an_assignment_is_unacknowledged_is_told_after_that(
    stand: Stand,
) -> None:
    """Nobody watches meanwhile: what has changed is looked for as the watch begins."""
    first, second = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
    joined = await first.join("m1")
    await second.settle("m2", await second.join("m2"))
    await first.settle("m1", joined)
    assert len(partitions_of(await first.expect("assignment", "m1"))) == 2


async def test_an_acknowledgement_of_an_older_assignment_says_nothing(stand: Stand) -> None:
    """The client acknowledges what it had, while a grant is on its way to it.

    Taken at its word it would not own the new partition, which would go to the next member while
    the client starts with it.
    """
    first, second = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
    alone = await first.join("m1")
    await first.settle("m1", alone)
    joined = await second.join("m2")
    await second.settle("m2", joined)
    shrunk = await first.expect("assignment", "m1")
    kept = partitions_of(shrunk)
    await first.send(acknowledge("m1", shrunk, only(shrunk, kept)))
    granted = await second.expect("assignment", "m2")
    stale = only(granted, set())
    await second.send(acknowledge("m2", joined, stale))
    third = SessionClient(stand.group_stub())
    await third.join("m3")
    await third.send(commit("m3", 4, {0: 1}))
    await third.expect("commit_result")
    members = await stand.members(GROUP)
    held = [p for m in members.values() for t in m.assignment for p in t.partitions]
    assert sorted(held) == [0, 1, 2, 3], members
    assert not members["m3"].assignment


async def test_a_newer_stream_takes_a_member_over(stand: Stand) -> None:
    older, newer = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
    joined = await older.join("m1", join_id=7)
    await older.settle("m1", joined)
    again = await newer.join("m1", member_epoch=2, join_id=9, owned=joined.assignment.topics)
    assert again.member_epoch == 2
    assert partitions_of(again) == {0, 1, 2, 3}
    update = await older.next_update()
    assert (update.join_id, update.fenced.superseded) == (7, True)
    assert update.fenced.error.reason == "FENCED_MEMBER_EPOCH"
    await newer.settle("m1", again)
    await until(lambda: watches(stand) == 1)
    # Whatever the older one still says of the member is not heard.
    await older.send(acknowledge("m1", joined, []))
    assert (await older.expect("fenced")).error.reason == "UNKNOWN_MEMBER_ID"
    assert (await stand.members(GROUP))["m1"].assignment


async def test_a_member_resumes_with_the_epoch_before_when_an_answer_was_lost(
    stand: Stand,
) -> None:
    first, second = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
    joined = await first.join("m1")
    await first.settle("m1", joined)
    await second.settle("m2", await second.join("m2", topics=["elsewhere"]))
    assert (await first.expect("assignment", "m1")).member_epoch == 3
    first.call.cancel()
    third = SessionClient(stand.group_stub())
    again = await third.join("m1", member_epoch=2, owned=joined.assignment.topics)
    assert again.member_epoch == 3
    assert partitions_of(again) == {0, 1, 2, 3}


async def test_losing_the_stream_loses_no_member_and_leaves_no_watch(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    await client.settle("m1", await client.join("m1"))
    await client.send(commit("m1", 2, {0: 1}))
    await client.expect("commit_result")
    assert watches(stand) == 1
    client.call.cancel()
    await until(lambda: watches(stand) == 0)
    assert (await stand.members(GROUP))["m1"].assignment


@pytest.mark.parametrize("point", ["opened", "join sent", "told", "watching", "commit sent"])
async def test_cancelling_at_any_point_leaves_nothing_behind(stand: Stand, point: str) -> None:
    client = SessionClient(stand.group_stub())
    if point == "opened":
        await client.send()
    if point == "join sent":
        await client.send(join("m1"))
    if point in ("told", "watching", "commit sent"):
        assignment = await client.join("m1")
        if point != "told":
            await client.settle("m1", assignment)
        if point == "commit sent":
            await client.send(commit("m1", 2, {0: 1}))
    client.call.cancel()
    sessions = stand.server._services.sessions
    await until(lambda: not sessions._sessions and not sessions._owners)
    assert watches(stand) == 0
    # And the server still serves.
    other = SessionClient(stand.group_stub())
    assert (await other.join("m9", group_id="other")).member_epoch == 2


async def test_a_member_that_left_is_gone_and_others_are_told(stand: Stand) -> None:
    first, second = SessionClient(stand.group_stub()), SessionClient(stand.group_stub())
    await first.settle("m1", await first.join("m1"))
    await second.settle("m2", await second.join("m2"))
    shrunk = await first.expect("assignment", "m1")
    await first.settle("m1", shrunk)
    told = await second.expect("assignment", "m2")
    await second.settle("m2", told)
    await second.send(leave("m2"))
    assert not (await second.expect("left", "m2")).HasField("error")
    assert set(await stand.members(GROUP)) == {"m1"}
    await first.settle("m1", await first.expect("assignment", "m1"))
    grown = await first.expect("assignment", "m1")
    assert partitions_of(grown) == {0, 1, 2, 3}
    await second.send(leave("m2"))
    assert (await second.expect("left")).error.reason == "UNKNOWN_MEMBER_ID"


async def test_commits_are_answered_by_their_correlation_id(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    await client.join("m1")
    await client.send(
        commit("m1", 2, {0: 10}, correlation_id=5),
        commit("m1", 9, {0: 11}, correlation_id=6),
        commit("m1", 2, {0: 12, 77: 1}, correlation_id=7),
        commit("m1", 2, {}, correlation_id=8),
    )
    results = {(r := await client.expect("commit_result")).correlation_id: r for _ in range(4)}
    assert not results[5].HasField("error")
    assert not results[5].failures
    assert results[6].error.reason in ("STALE_MEMBER_EPOCH", "FENCED_MEMBER_EPOCH")
    (failed,) = results[7].failures
    assert [entry.partition for entry in failed.partitions] == [77]
    assert failed.partitions[0].error.reason == "UNKNOWN_TOPIC_OR_PARTITION"
    assert results[8].error.reason == "INVALID_REQUEST"
    fetched = await stand.group_stub().FetchOffsets(group_pb2.FetchOffsetsRequest(group_id=GROUP))
    assert [entry.offset for topic in fetched.topics for entry in topic.partitions] == [12]


async def test_a_half_closed_stream_still_gets_its_answers(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    await client.send(join("m1"))
    await client.send(commit("m1", 2, {0: 1}))
    await client.call.done_writing()
    await client.expect("assignment")
    await client.expect("commit_result")
    assert await client.read() is None
    assert (await end_status(client.call))[0] is grpc.StatusCode.OK


async def test_an_expired_member_is_told_and_may_join_again() -> None:
    async with running_stand(session_timeout_ms=300) as short:
        client = SessionClient(short.group_stub(), answers_pings=False)
        await client.settle("m1", await client.join("m1"))
        assert (await client.expect("fenced", "m1")).error.reason == "UNKNOWN_MEMBER_ID"
        again = await client.join("m1", join_id=2)
        assert partitions_of(again) == {0, 1, 2, 3}


async def test_a_member_that_expires_while_told_is_fenced_when_it_speaks_again() -> None:
    """A program hung before it could acknowledge: nothing watches for it, its next word does."""
    async with running_stand(session_timeout_ms=300) as short:
        client = SessionClient(short.group_stub())
        joined = await client.join("m1")
        await short.until_empty(GROUP)
        await client.send()
        assert (await client.expect("fenced", "m1")).error.reason == "UNKNOWN_MEMBER_ID"
        await client.settle("m1", joined)
        assert (await client.expect("fenced", "m1")).error.reason == "UNKNOWN_MEMBER_ID"


async def test_pongs_keep_members_alive_and_silence_does_not() -> None:
    async with running_stand(session_timeout_ms=600, heartbeat_interval_ms=100) as short:
        alive = SessionClient(short.group_stub())
        hung = SessionClient(short.group_stub(), answers_pings=False)
        await alive.join("alive", group_id="alive")
        await hung.join("hung", group_id="hung")

        async def stay_alive() -> None:
            while True:
                await alive.read()

        staying = asyncio.create_task(stay_alive())
        await short.until_empty("hung")
        # So many take more than a session, however long the machine stands still meanwhile.
        await until(lambda: alive.pings > 6)
        assert set(await short.members("alive")) == {"alive"}
        staying.cancel()


async def test_renewed_sequence_is_of_a_message_that_renewed_the_sessions(stand: Stand) -> None:
    async with running_stand(heartbeat_interval_ms=200) as short:
        client = SessionClient(short.group_stub())
        joined = await client.join("m1")
        entry = short.runtime.liveness.get(GROUP, "m1")  # type: ignore[arg-type]
        assert entry is not None
        await client.settle("m1", joined)
        while client.renewed_sequence < 3:
            heard = entry.last_heard_ms
            before = client.renewed_sequence
            await client.read()
            if client.renewed_sequence > before > 0:
                assert entry.last_heard_ms >= heard


# ------------------------------------------------------------------------------- bad requests


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"member_epoch": -1}, "INVALID_REQUEST"),
        ({"member_epoch": 2**31 - 1}, "GROUP_ID_NOT_FOUND"),
        ({"rebalance_timeout_ms": 0}, "INVALID_REQUEST"),
        ({"rebalance_timeout_ms": -5}, "INVALID_REQUEST"),
        ({"group_id": ""}, "INVALID_REQUEST"),
        ({"group_id": " \t"}, "INVALID_REQUEST"),
        ({"group_id": "g" * 40_000}, "INVALID_GROUP_ID"),
        ({"server_assignor": "astrology"}, "UNSUPPORTED_ASSIGNOR"),
        ({"instance_id": "i" * 2_000}, "INVALID_REQUEST"),
        ({"topics": [f"t{n}" for n in range(10_001)]}, "INVALID_REQUEST"),
        ({"topics": [""]}, "INVALID_TOPIC_EXCEPTION"),
        ({"topics": ["t" * 250]}, "INVALID_TOPIC_EXCEPTION"),
        ({"client_id": "c" * 2_000}, "INVALID_REQUEST"),
        ({"rack_id": "r" * 2_000}, "INVALID_REQUEST"),
        ({"owned": [types_pb2.TopicPartitions(topic_name="orders")]}, "INVALID_REQUEST"),
        (
            {"member_epoch": 2, "owned": [types_pb2.TopicPartitions(topic_id=b"short")]},
            "INVALID_REQUEST",
        ),
        ({"member_epoch": 2, "owned": [types_pb2.TopicPartitions()]}, "INVALID_REQUEST"),
        (
            {"member_epoch": 2, "owned": [types_pb2.TopicPartitions(topic_name="nowhere")]},
            "UNKNOWN_TOPIC_OR_PARTITION",
        ),
        (
            {
                "member_epoch": 2,
                "owned": [types_pb2.TopicPartitions(topic_name="orders", partitions=[-1])],
            },
            "INVALID_REQUEST",
        ),
        (
            {
                "member_epoch": 2,
                "owned": [types_pb2.TopicPartitions(topic_name="o", partitions=range(200_001))],
            },
            "INVALID_REQUEST",
        ),
    ],
)
async def test_a_join_that_makes_no_sense_is_refused_by_name(
    stand: Stand, fields: dict[str, object], reason: str
) -> None:
    client = SessionClient(stand.group_stub())
    await client.send(join("m1", join_id=4, **fields))  # type: ignore[arg-type]
    update = await client.next_update()
    kind = update.WhichOneof("update")
    assert kind == ("fenced" if reason == "GROUP_ID_NOT_FOUND" else "refused")
    assert getattr(update, kind).error.reason == reason
    assert update.join_id == 4
    assert not await stand.members(GROUP)
    # The next valid member is served on the same stream.
    assert (await client.join("m2")).member_epoch == 2


@pytest.mark.parametrize("member_id", ["", "  ", "m" * 1_025])
async def test_a_member_id_that_makes_no_sense_is_refused(stand: Stand, member_id: str) -> None:
    client = SessionClient(stand.group_stub())
    await client.send(join(member_id))
    assert (await client.expect("refused")).error.reason == "INVALID_REQUEST"


async def test_ids_may_hold_any_text(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    for name in ("../../etc/passwd", "a\nb", "nul\0nul", "\U0001f600", "раз"):
        assert (await client.join("m-" + name, group_id=name)).member_epoch == 2


async def test_an_action_that_is_not_known_is_refused(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    await client.send(group_pb2.MemberAction(group_id=GROUP, member_id="m1"))
    assert (await client.expect("refused")).error.reason == "INVALID_REQUEST"


async def test_an_acknowledgement_that_makes_no_sense_is_refused(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    joined = await client.join("m1", join_id=3)
    await client.send(acknowledge("m1", joined, [types_pb2.TopicPartitions(topic_id=b"short")]))
    update = await client.next_update()
    assert (update.refused.error.reason, update.join_id) == ("INVALID_REQUEST", 3)
    assert not update.refused.retriable
    assert watches(stand) == 0


async def test_a_member_that_never_joined_here_cannot_acknowledge_or_leave(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    await client.send(
        acknowledge("stranger", group_pb2.Assignment(assignment_id=1), []),
        leave("stranger"),
        leave("m1", member_epoch=-2),
        leave("m1", member_epoch=-3),
        leave("m1", member_epoch=7),
    )
    assert (await client.expect("fenced")).error.reason == "UNKNOWN_MEMBER_ID"
    assert (await client.expect("left")).error.reason == "UNKNOWN_MEMBER_ID"
    for _ in range(3):
        assert (await client.expect("left")).error.reason == "INVALID_REQUEST"


async def test_too_many_actions_in_one_message_end_the_stream(stand: Stand) -> None:
    client = SessionClient(stand.group_stub())
    await client.send(*(leave(f"m{n}") for n in range(1_001)))
    code, details = await end_status(client.call)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "1001 actions" in details


async def test_members_of_a_stream_are_limited() -> None:
    async with running_stand(grpc_settings=GrpcSettings(grpc_stream_members_max=2)) as small:
        client = SessionClient(small.group_stub())
        for name in ("m1", "m2"):
            await client.join(name, group_id=name)
        await client.send(join("m3", group_id="m3"))
        assert (await client.expect("refused", "m3")).error.reason == "POLICY_VIOLATION"


async def test_a_client_that_does_not_read_is_held_back_and_hurts_nobody() -> None:
    """It commits for ever and reads no answer: what waits for it stays bounded, and is not lost."""
    async with running_stand(grpc_settings=GrpcSettings(grpc_stream_pending_max=50)) as small:
        greedy = SessionClient(small.group_stub())
        await greedy.join("m1")
        action = commit("m1", 2, {0: 1}, topic="x" * 249)

        is_enough = asyncio.Event()

        async def flood() -> None:
            while not is_enough.is_set():
                await greedy.send(*([action] * 200))

        task = asyncio.create_task(flood())
        sent = -1
        while sent != greedy.sequence:
            sent = greedy.sequence
            await asyncio.sleep(0.2)
        (session,) = small.server._services.sessions._sessions
        assert isinstance(session, Session)
        assert session._output.pending <= 50 + 1 + 200
        other = SessionClient(small.group_stub())
        assert (await other.join("m2", group_id="other")).member_epoch == 2
        is_enough.set()
        for _ in range(200 * (sent - 1)):
            assert (await greedy.expect("commit_result")).failures
        await task


# ------------------------------------------------------------------------------ authorisation


async def test_groups_and_topics_are_authorised() -> None:
    rights = Rights(
        (Operation.READ, ResourceType.GROUP, "secret"),
        (Operation.DESCRIBE, ResourceType.TOPIC, "hidden"),
        (Operation.READ, ResourceType.TOPIC, "orders"),
    )
    async with running_stand(authorizer=rights) as guarded:
        client = SessionClient(guarded.group_stub())
        await client.send(join("m1", group_id="secret"))
        assert (await client.expect("refused")).error.reason == "GROUP_AUTHORIZATION_FAILED"
        await client.send(join("m1", topics=["orders", "hidden"]))
        refused = await client.expect("refused")
        assert refused.error.reason == "TOPIC_AUTHORIZATION_FAILED"
        assert "hidden" not in refused.error.error_message
        await client.send(leave("m1", group_id="secret"))
        assert (await client.expect("left")).error.reason == "GROUP_AUTHORIZATION_FAILED"
        await client.send(commit("m1", 2, {0: 1}, group_id="secret"))
        result = await client.expect("commit_result")
        assert result.error.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        await guarded.create_topic("open", 1)
        joined = await client.join("m1")
        both = commit("m1", joined.member_epoch, {0: 1})
        both.commit.topics.append(
            types_pb2.TopicOffsets(
                topic_name="open", partitions=[types_pb2.PartitionOffset(partition=0, offset=3)]
            )
        )
        await client.send(both)
        result = await client.expect("commit_result")
        (failed,) = result.failures
        assert failed.topic_name == "orders"
        assert failed.partitions[0].error.reason == "TOPIC_AUTHORIZATION_FAILED"
        assert not await guarded.members("secret")
    assert {asked[:2] for asked in rights.asked} == {("User:ANONYMOUS", "/127.0.0.1")}


async def test_a_member_that_goes_on_over_kafkas_wire_is_not_asked_for_here(stand: Stand) -> None:
    """Nobody waits for its news any more: the stream would take them from the newer connection."""
    client = SessionClient(stand.group_stub())
    joined = await client.join("m1")
    await client.settle("m1", joined)
    await until(lambda: watches(stand) == 1)
    caller = Caller("User:ANONYMOUS", "", "/127.0.0.1")
    heartbeat = ConsumerGroupHeartbeat(caller, GroupId(GROUP), MemberId("m1"), joined.member_epoch)
    await stand.runtime.call(heartbeat)
    assert (await client.expect("fenced", "m1")).superseded
    assert watches(stand) == 0


async def test_what_is_no_message_ends_a_stream_that_is_being_answered(stand: Stand) -> None:
    """Bug: where it came in the middle of the first write, the client never heard of an end."""
    broken = b"\xff\xff"

    async def run(number: int) -> None:
        channel: Any = stand.channel()
        call = channel.stream_stream("/muster.v1.GroupService/Session")()
        joined = group_pb2.SessionRequest(sequence=1, actions=[join(f"m{number}")])
        await call.write(joined.SerializeToString())
        await call.write(broken)
        async for _ in call:
            pass

    async with asyncio.timeout(30):
        ends = await asyncio.gather(*(run(n) for n in range(40)), return_exceptions=True)
    for end in ends:
        assert isinstance(end, grpc.aio.AioRpcError)
        assert end.code() is grpc.StatusCode.INVALID_ARGUMENT
