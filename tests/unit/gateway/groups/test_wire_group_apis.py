"""Heartbeat, list and describe over the real coordinator, in all versions; stopping."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from coordinator.core.replay.group_records import replay
from gateway.codec.kio_schema import request_schema
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode
from model.ids import GroupId
from tests.support.gateway.fake_coordinator import VirtualClock
from tests.support.gateway.wire_rig import run_rig, topic_id_of
from tests.support.gateway.wire_steps import (
    COMMIT,
    DESCRIBE,
    DESCRIBE_GROUPS,
    FIND,
    HEARTBEAT,
    LIST,
    UNPARKED,
    commit_codes,
    commit_topics,
    fetch,
    member_of,
)
from tests.support.imported_groups import make_imported
from tests.support.waiting import until, until_answered
from tests.support.wire.fields import beat, join


async def test_group_of_two_by_both_versions() -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as one, await rig.connect() as two:
        await rig.create_topic("t", 4)
        joined = await one.ask(HEARTBEAT, 1, **join("g", "m1", ("t",)))
        assert (joined.member_id, joined.member_epoch) == ("m1", 2)
        assert joined.assignment.topic_partitions[0].partitions == (0, 1, 2, 3)
        other = await two.ask(HEARTBEAT, 0, **join("g", "", ("t",)))
        assert str(uuid.UUID(other.member_id)) == other.member_id, "version 0 is given an id"
        assert other.assignment.topic_partitions == ()
        revoked = await one.ask(HEARTBEAT, 1, **beat("g", "m1", 2))
        kept = revoked.assignment.topic_partitions
        assert len(kept[0].partitions) == 2
        wire = request_schema(HEARTBEAT)
        owned = tuple(
            wire.TopicPartitions(topic_id=row.topic_id, partitions=row.partitions[::-1])
            for row in kept
        )
        assert (
            await one.ask(HEARTBEAT, 1, **beat("g", "m1", 2, topic_partitions=owned))
        ).member_epoch == 3
        granted = await two.ask(HEARTBEAT, 0, **beat("g", other.member_id, 3))
        assert {*granted.assignment.topic_partitions[0].partitions, *kept[0].partitions} == {
            *range(4)
        }
        left = await one.ask(HEARTBEAT, 1, **beat("g", "m1", -1))
        assert (left.error_code, left.member_epoch, left.heartbeat_interval) == (0, -1, 0)
        gone = await one.ask(HEARTBEAT, 1, **beat("g", "m1", 3))
        assert gone.error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_empty_subscription_is_allowed() -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        answer = await client.ask(HEARTBEAT, 1, **join("g", "m", ()))
        assert answer.error_code == 0


async def test_repeated_heartbeat_says_what_the_first_one_said() -> None:
    """Cached response against computed response, in each state in which a member rests."""
    async with run_rig(UNPARKED) as rig, await rig.connect() as one, await rig.connect() as two:
        await rig.create_topic("t", 4)
        await member_of(one, "g", "m1")
        await member_of(two, "g", "m2")
        for client, member, epoch in ((one, "m1", 2), (two, "m2", 3)):
            first = await client.ask(HEARTBEAT, 1, **beat("g", member, epoch))
            answers = []
            before = rig.runtime.stats.commands.get("ConsumerGroupHeartbeat", 0)
            for _ in range(5):
                answers.append(await client.ask(HEARTBEAT, 1, **beat("g", member, epoch)))
            computed = rig.runtime.stats.commands["ConsumerGroupHeartbeat"] - before
            if member == "m1":
                # It must revoke: each of its heartbeats is the coordinator's to answer.
                assert computed == 5
            else:
                assert answers == [first] * 5, "still waiting for partitions"
                assert computed <= 1


async def test_member_that_only_repeats_itself_is_kept_alive() -> None:
    """A cached heartbeat keeps the member's session alive, but only while it repeats."""
    settings = CoordinatorSettings(group_consumer_session_timeout_ms=400)
    async with run_rig(UNPARKED, settings) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        epoch = await member_of(client, "g")
        for _ in range(16):
            assert (await client.ask(HEARTBEAT, 1, **beat("g", "m", epoch))).error_code == 0
            await asyncio.sleep(0.05)
        await until_answered(
            lambda: client.ask(DESCRIBE, 1, group_ids=("g",)),
            lambda answer: not answer.groups[0].members,
        )
        answer = await client.ask(HEARTBEAT, 1, **beat("g", "m", epoch))
        assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_list_and_describe() -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        await member_of(client, "g")
        await client.ask(
            COMMIT,
            9,
            group_id="simple",
            generation_id_or_member_epoch=-1,
            topics=commit_topics(9, "t", {0: (1, "")}),
        )
        for version in range(6):
            answer = await client.ask(LIST, version)
            assert {row.group_id: row.protocol_type for row in answer.groups} == {
                "g": "consumer",
                "simple": "",
            }
        assert {(row.group_id, row.group_state, row.group_type) for row in answer.groups} == {
            ("g", "Stable", "consumer"),
            ("simple", "Empty", "classic"),
        }
        for filters, expected in (
            ({"states_filter": ("STABLE",)}, ["g"]),
            ({"types_filter": ("Classic",)}, ["simple"]),
            ({"types_filter": ("nonsense",)}, []),
        ):
            answer = await client.ask(LIST, 5, **filters)
            assert [row.group_id for row in answer.groups] == expected
        for version in range(2):
            answer = await client.ask(
                DESCRIBE,
                version,
                group_ids=("g", "absent", "simple", ""),
                include_authorized_operations=True,
            )
            assert [row.error_code for row in answer.groups] == [0, 69, 69, 24]
            group = answer.groups[0]
            assert (group.group_state, group.group_epoch, group.assignor_name) == (
                "Stable",
                2,
                "uniform",
            )
            [member] = group.members
            assert (member.client_id, member.client_host) == ("c", "/127.0.0.1")
            assert member.subscribed_topic_names == ("t",)
            assert member.assignment.topic_partitions[0].topic_name == "t"
            assert member.assignment == member.target_assignment
            assert group.authorized_operations == sum(1 << bit for bit in (3, 6, 8, 10, 11))
        assert member.member_type == 1
        for version in range(7):
            answer = await client.ask(DESCRIBE_GROUPS, version, groups=("g", "absent", "simple"))
            missing = ErrorCode.GROUP_ID_NOT_FOUND if version == 6 else 0
            assert [(row.error_code, row.group_state) for row in answer.groups] == [
                (missing, "Dead"),
                (missing, "Dead"),
                (0, "Empty"),
            ]


async def test_stopping_coordinator_is_an_error_in_every_api() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        await rig.runtime.stop()
        assert (await client.ask(HEARTBEAT, 1, **join("g", "m", ("t",)))).error_code == 15
        answer = await client.ask(
            COMMIT, 9, group_id="g", topics=commit_topics(9, "t", {0: (1, "")})
        )
        assert commit_codes(answer) == [15]
        assert (await fetch(client, 9, "g"))["error"] == 15
        assert (await client.ask(LIST, 5)).error_code == 15
        assert (await client.ask(DESCRIBE, 1, group_ids=("g",))).groups[0].error_code == 15
        assert (await client.ask(DESCRIBE_GROUPS, 6, groups=("g",))).groups[0].error_code == 15
        assert (await client.ask(FIND, 6, coordinator_keys=("g",))).coordinators[0].error_code == 15


async def test_drain_answers_parked_heartbeats_and_accepts_nobody() -> None:
    """No park ends by itself: the clock stands still."""
    async with run_rig(clock=VirtualClock()) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        epoch = await member_of(client, "g")
        sent = client.send(HEARTBEAT, 1, **beat("g", "m", epoch))
        await until(lambda: len(rig.runtime.parts.watches) == 1)
        async with asyncio.timeout(30):
            await rig.server.stop(600.0)
        correlation_id, answer = await client.read(HEARTBEAT, 1)
        assert (correlation_id, answer.error_code) == (sent, 0)
        assert await client.is_closed()
        with pytest.raises(ConnectionError):
            await rig.connect()


async def test_a_classic_group_is_described_with_its_members_in_every_version() -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        shard = rig.runtime.shards[rig.runtime.partition_of(GroupId("c"))]
        options = {"type": "connect", "protocol": "v1", "generation": "7", "members": "a,b"}
        for record in make_imported("classic", "c", options):
            replay(shard, record)
        for version in range(7):
            answer = await client.ask(DESCRIBE_GROUPS, version, groups=("c", "absent"))
            group, absent = answer.groups
            assert (group.group_state, group.protocol_type, group.protocol_data) == (
                "Stable",
                "connect",
                "v1",
            )
            assert [
                (row.member_id, row.client_id, row.member_metadata, row.member_assignment)
                for row in group.members
            ] == [
                ("a", "client-a", b"about a", b"for a"),
                ("b", "client-b", b"about b", b"for b"),
            ]
            assert absent.error_code == (0 if version < 6 else ErrorCode.GROUP_ID_NOT_FOUND)
            assert (absent.group_state, absent.members) == ("Dead", ())


async def test_a_member_learns_at_once_what_its_pattern_stands_for() -> None:
    """Its heartbeats are parked, and a change ends the park."""
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t-1", 1)
        pattern = join("g", "m", (), subscribed_topic_regex="t-[0-9]")
        answer = await client.ask(HEARTBEAT, 1, **pattern)
        assert (answer.error_code, answer.member_epoch) == (0, 1)
        answer = await client.ask(HEARTBEAT, 1, **beat("g", "m", 1, topic_partitions=()))
        assert answer.member_epoch == 2
        assert [topic.topic_id for topic in answer.assignment.topic_partitions] == [
            topic_id_of("t-1")
        ]
        await rig.create_topic("t-2", 1)
        while answer.member_epoch == 2:
            answer = await client.ask(HEARTBEAT, 1, **beat("g", "m", 2))
        assert answer.member_epoch == 3
        assert len(answer.assignment.topic_partitions) == 2
        described = await client.ask(DESCRIBE, 1, group_ids=("g",))
        [member] = described.groups[0].members
        assert member.subscribed_topic_regex == "t-[0-9]"


async def test_a_pattern_that_is_none_is_refused_and_changes_nothing() -> None:
    async with run_rig(UNPARKED) as rig, await rig.connect() as client:
        answer = await client.ask(
            HEARTBEAT, 1, **join("g", "m", ("t",), subscribed_topic_regex="(unclosed")
        )
        assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert answer.error_message == (
            "SubscribedTopicRegex `(unclosed` is not a valid regular expression: missing closing )."
        )
        assert (await client.ask(LIST, 5)).groups == ()
