"""Authorization, API by API, and the errors for unauthorized callers."""

from __future__ import annotations

from gateway.codec.kio_schema import request_schema
from model.access.acls import Operation, ResourceType
from model.errors import ErrorCode
from tests.support.authorizers import Rights
from tests.support.gateway.wire_rig import run_rig, topic_id_of
from tests.support.gateway.wire_steps import (
    COMMIT,
    CONFIGS,
    DESCRIBE,
    DESCRIBE_GROUPS,
    FETCH,
    FIND,
    HEARTBEAT,
    LIST,
    METADATA,
    UNPARKED,
    commit_codes,
    commit_topics,
    fetch,
    member_of,
)
from tests.support.wire.fields import beat, join

GROUP_READ = (Operation.READ, ResourceType.GROUP, "g")
GROUP_DESCRIBE = (Operation.DESCRIBE, ResourceType.GROUP, "g")
TOPIC_READ = (Operation.READ, ResourceType.TOPIC, "t")
TOPIC_DESCRIBE = (Operation.DESCRIBE, ResourceType.TOPIC, "t")
CLUSTER_DESCRIBE = (Operation.DESCRIBE, ResourceType.CLUSTER, "kafka-cluster")
NO_GROUP = ErrorCode.GROUP_AUTHORIZATION_FAILED
NO_TOPIC = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_who_asks_is_the_anonymous_user_from_its_host() -> None:
    rights = Rights()
    async with run_rig(authorizer=rights) as rig, await rig.connect() as client:
        await client.ask(FIND, 0, key="g")
    assert {asked[:2] for asked in rights.asked} == {("User:ANONYMOUS", "/127.0.0.1")}


async def test_heartbeat_needs_the_group_and_every_topic_named() -> None:
    rights = Rights(GROUP_READ)
    async with run_rig(UNPARKED, authorizer=rights) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        answer = await client.ask(HEARTBEAT, 1, **join("g", "m", ("t",)))
        assert answer.error_code == NO_GROUP
        rights.denied = {TOPIC_DESCRIBE}
        answer = await client.ask(HEARTBEAT, 1, **join("g", "m", ("u", "t")))
        assert answer.error_code == NO_TOPIC
        assert (await client.ask(LIST, 5)).groups == (), "nothing was changed"
        rights.denied = set()
        epoch = await member_of(client, "g")
        for _ in range(3):
            assert (await client.ask(HEARTBEAT, 1, **beat("g", "m", epoch))).error_code == 0
        rights.denied = {GROUP_READ}
        answer = await client.ask(HEARTBEAT, 1, **beat("g", "m", epoch))
        assert answer.error_code == NO_GROUP, "also where the answer was kept"


async def test_commit_needs_the_group_and_each_topic_for_itself() -> None:
    rights = Rights(GROUP_READ)
    async with run_rig(authorizer=rights) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        await rig.create_topic("u", 1)
        for version in range(2, 11):
            topics = (
                commit_topics(version, "u", {0: (1, "")})
                + commit_topics(version, "t", {0: (1, "")})
                + commit_topics(version, "u", {0: (2, "")})
            )
            fields = {
                "group_id": "g",
                "generation_id_or_member_epoch": -1,
                "topics": topics,
            }
            rights.denied = {GROUP_READ}
            assert commit_codes(await client.ask(COMMIT, version, **fields)) == [NO_GROUP] * 3
            rights.denied = {TOPIC_READ}
            assert commit_codes(await client.ask(COMMIT, version, **fields)) == [0, NO_TOPIC, 0]
        assert (await fetch(client, 9, "g"))["rows"][0][0] == -1, "nothing was written for it"


async def test_fetch_needs_the_group_and_hides_topics() -> None:
    rights = Rights()
    async with run_rig(authorizer=rights) as rig, await rig.connect() as client:
        await rig.create_topic("t", 2)
        await rig.create_topic("u", 2)
        for name in ("t", "u"):
            await client.ask(
                COMMIT,
                9,
                group_id="g",
                generation_id_or_member_epoch=-1,
                topics=commit_topics(9, name, {0: (5, "")}),
            )
        rights.denied = {GROUP_DESCRIBE}
        for version in range(1, 11):
            found = await fetch(client, version, "g")
            if version == 1:
                assert {row[3] for row in found["rows"].values()} == {NO_GROUP}
            else:
                assert found == {"error": NO_GROUP, "rows": {}}
        rights.denied = {TOPIC_DESCRIBE}
        for version in range(1, 11):
            found = await fetch(client, version, "g")
            assert found["error"] == 0
            assert {(row[0], row[3]) for row in found["rows"].values()} == {(-1, NO_TOPIC)}
        wire = request_schema(FETCH, 9)
        row = wire.OffsetFetchRequestGroup(group_id="g", topics=None)
        [group] = (await client.ask(FETCH, 9, groups=(row,))).groups
        assert [topic.name for topic in group.topics] == ["u"]


async def test_list_and_describe_hide_what_may_not_be_described() -> None:
    rights = Rights()
    async with run_rig(UNPARKED, authorizer=rights) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        await member_of(client, "g")
        rights.denied = {GROUP_DESCRIBE}
        assert len((await client.ask(LIST, 5)).groups) == 1, "who may describe the cluster sees all"
        rights.denied = {GROUP_DESCRIBE, CLUSTER_DESCRIBE}
        assert (await client.ask(LIST, 5)).groups == ()
        answer = await client.ask(DESCRIBE, 1, group_ids=("g",))
        assert (answer.groups[0].error_code, answer.groups[0].members) == (NO_GROUP, ())
        answer = await client.ask(DESCRIBE_GROUPS, 6, groups=("g",))
        assert answer.groups[0].error_code == NO_GROUP
        answer = await client.ask(FIND, 6, coordinator_keys=("g",))
        assert (answer.coordinators[0].error_code, answer.coordinators[0].node_id) == (NO_GROUP, -1)
        rights.denied = {TOPIC_DESCRIBE}
        answer = await client.ask(DESCRIBE, 1, group_ids=("g",))
        assert (answer.groups[0].error_code, answer.groups[0].members) == (NO_TOPIC, ())


async def test_metadata_hides_topics() -> None:
    rights = Rights(TOPIC_DESCRIBE)
    async with run_rig(authorizer=rights) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        topic = request_schema(METADATA, 12).MetadataRequestTopic
        names = (topic(name="t", topic_id=None), topic(name="absent", topic_id=None))
        answer = await client.ask(METADATA, 12, topics=names)
        assert [(row.error_code, row.name) for row in answer.topics] == [
            (NO_TOPIC, "t"),
            (3, "absent"),
        ]
        by_id = topic(name=None, topic_id=topic_id_of("t"))
        [row] = (await client.ask(METADATA, 12, topics=(by_id,))).topics
        assert (row.error_code, row.name) == (NO_TOPIC, None)
        assert (await client.ask(METADATA, 12, topics=None)).topics == ()


async def test_metadata_of_a_missing_topic_has_the_rights_on_its_name() -> None:
    rights = Rights((Operation.DESCRIBE, ResourceType.TOPIC, "no name"))
    async with run_rig(authorizer=rights) as rig, await rig.connect() as client:
        topic = request_schema(METADATA, 12).MetadataRequestTopic
        names = ("absent", "no name", "nor this")
        topics = tuple(topic(name=name, topic_id=None) for name in names)
        answer = await client.ask(
            METADATA, 12, topics=topics, include_topic_authorized_operations=True
        )
        every_right, unknown = 0b110111111000, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        shown = [(row.error_code, row.topic_authorized_operations) for row in answer.topics]
        assert shown == [
            (unknown, every_right),
            (NO_TOPIC, -(2**31)),
            (ErrorCode.INVALID_TOPIC_EXCEPTION, every_right),
        ]


async def test_configs_need_describe_configs() -> None:
    operation = Operation.DESCRIBE_CONFIGS
    rights = Rights(
        (operation, ResourceType.CLUSTER, "kafka-cluster"),
        (operation, ResourceType.TOPIC, "t"),
        (operation, ResourceType.GROUP, "g"),
    )
    wire = request_schema(CONFIGS, 4)
    async with run_rig(authorizer=rights) as rig, await rig.connect() as client:
        asked = tuple(
            wire.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
            for kind, name in ((4, "1"), (2, "t"), (32, "g"))
        )
        answer = await client.ask(CONFIGS, 4, resources=asked)
        assert [row.error_code for row in answer.results] == [31, NO_TOPIC, NO_GROUP]
        assert all(row.configs == () for row in answer.results)


async def test_a_pattern_brings_only_topics_that_may_be_described() -> None:
    rights = Rights(TOPIC_DESCRIBE)
    async with run_rig(UNPARKED, authorizer=rights) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        await rig.create_topic("t2", 1)
        pattern = join("g", "m", (), subscribed_topic_regex="t.*")
        answer = await client.ask(HEARTBEAT, 1, **pattern)
        assert (answer.error_code, answer.member_epoch) == (0, 1)
        while answer.member_epoch == 1:
            answer = await client.ask(HEARTBEAT, 1, **beat("g", "m", 1, topic_partitions=()))
        assert answer.error_code == 0
        [topic] = answer.assignment.topic_partitions
        assert (topic.topic_id, topic.partitions) == (topic_id_of("t2"), (0,))
