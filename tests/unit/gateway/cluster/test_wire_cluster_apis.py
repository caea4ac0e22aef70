"""ApiVersions, Metadata and DescribeCluster, in all versions."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.apis.api_registry import APIS
from gateway.codec.kio_schema import request_schema
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode
from tests.support.gateway.wire_rig import run_rig, topic_id_of, with_settings
from tests.support.gateway.wire_steps import (
    CLUSTER,
    CONFIGS,
    FIND,
    METADATA,
    VERSIONS,
)


async def test_api_versions_lists_what_is_served_and_the_group_feature() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        software = {"client_software_name": "test", "client_software_version": "1.0"}
        for version in range(5):
            answer = await client.ask(VERSIONS, version, **(software if version >= 3 else {}))
            assert answer.error_code == 0
            assert {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys} == {
                api.key: api.advertised for api in APIS
            }
        features = {row.name: row.max_version_level for row in answer.finalized_features}
        assert features["group.version"] == 1
        assert {row.name: row.min_version for row in answer.supported_features}[
            "group.version"
        ] == 0
        third = await client.ask(VERSIONS, 3, **software)
        assert all(row.min_version > 0 for row in third.supported_features)


async def test_metadata_by_name_by_id_and_of_all_topics_in_every_version() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        await rig.create_topic("t", 3)
        await rig.create_topic("u", 1)
        for version in range(14):
            topic = request_schema(METADATA, version).MetadataRequestTopic
            extra = {"topic_id": None} if version >= 10 else {}
            answer = await client.ask(METADATA, version, topics=(topic(name="t", **extra),))
            [broker] = answer.brokers
            assert (broker.node_id, broker.host, broker.port) == (1, "127.0.0.1", rig.port)
            [found] = answer.topics
            assert (found.error_code, found.name) == (0, "t")
            assert [
                (row.error_code, row.partition_index, row.leader_id, row.replica_nodes)
                for row in found.partitions
            ] == [(0, number, 1, (1,)) for number in range(3)]
            if version >= 7:
                assert {row.leader_epoch for row in found.partitions} == {0}
            everything = await client.ask(METADATA, version, topics=None if version else ())
            assert {found.name for found in everything.topics} == {"t", "u"}
            if version >= 1:
                nothing = await client.ask(METADATA, version, topics=())
                assert nothing.topics == ()
            if version >= 12:
                by_id = topic(name=None, topic_id=topic_id_of("u"))
                unknown = topic(name=None, topic_id=b"\xee" * 16)
                answer = await client.ask(METADATA, version, topics=(by_id, unknown))
                assert [(row.error_code, row.name) for row in answer.topics] == [
                    (0, "u"),
                    (ErrorCode.UNKNOWN_TOPIC_ID, None),
                ]


@pytest.mark.parametrize("version", [12, 13])
async def test_metadata_by_id_looks_at_no_name(version: int) -> None:
    """Java sends the empty name with each id, and Kafka drops rows without an id beside others."""
    topic = request_schema(METADATA, version).MetadataRequestTopic
    async with run_rig(with_settings(auto_create_topics_enable=True)) as rig:
        await rig.create_topic("t", 1)
        await rig.create_topic("u", 1)
        wanted = (
            topic(name="", topic_id=topic_id_of("u")),
            topic(name="other", topic_id=b"\xee" * 16),
            topic(name="t", topic_id=None),
        )
        async with await rig.connect() as client:
            answer = await client.ask(
                METADATA, version, topics=wanted, allow_auto_topic_creation=True
            )
        assert [(row.error_code, row.name) for row in answer.topics] == [
            (0, "u"),
            (ErrorCode.UNKNOWN_TOPIC_ID, None),
        ]
        assert set(rig.runtime.image.by_name) == {"t", "u"}


async def test_metadata_creates_topics_only_where_that_is_set() -> None:
    topic = request_schema(METADATA, 12).MetadataRequestTopic
    wanted = (topic(name="new", topic_id=None), topic(name="bad/name", topic_id=None))
    async with run_rig() as rig, await rig.connect() as client:
        answer = await client.ask(METADATA, 12, topics=wanted, allow_auto_topic_creation=True)
        assert [row.error_code for row in answer.topics] == [3, 17]
        assert not rig.runtime.image.by_name
    settings = with_settings(auto_create_topics_enable=True, num_partitions=2)
    async with run_rig(settings) as rig, await rig.connect() as client:
        answer = await client.ask(METADATA, 12, topics=wanted, allow_auto_topic_creation=False)
        assert [row.error_code for row in answer.topics] == [3, 17]
        answer = await client.ask(METADATA, 12, topics=wanted, allow_auto_topic_creation=True)
        assert [row.error_code for row in answer.topics] == [0, 17]
        assert len(answer.topics[0].partitions) == 2


async def test_find_coordinator_in_every_version() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        for version in range(4):
            answer = await client.ask(FIND, version, key="g")
            assert (answer.error_code, answer.node_id) == (0, 1)
            assert (answer.host, answer.port) == ("127.0.0.1", rig.port)
        for version in range(4, 7):
            answer = await client.ask(FIND, version, coordinator_keys=("g", "h"))
            assert [(row.key, row.error_code, row.port) for row in answer.coordinators] == [
                ("g", 0, rig.port),
                ("h", 0, rig.port),
            ]
        for key_type in (1, 2):
            answer = await client.ask(FIND, 6, key_type=key_type, coordinator_keys=("x",))
            [row] = answer.coordinators
            assert (row.error_code, row.node_id, row.host, row.port) == (15, -1, "", -1)
            assert answer.throttle_time == 100, "not asked without a pause"
        answer = await client.ask(FIND, 6, key_type=9, coordinator_keys=("x",))
        assert answer.coordinators[0].error_code == ErrorCode.INVALID_REQUEST


async def test_describe_cluster_in_every_version() -> None:
    async with run_rig() as rig, await rig.connect() as client:
        for version in range(3):
            answer = await client.ask(
                CLUSTER, version, include_cluster_authorized_operations=version == 2
            )
            assert (answer.error_code, answer.controller_id) == (0, 1)
            assert answer.cluster_id == rig.runtime.cluster_id
            assert [(row.broker_id, row.port) for row in answer.brokers] == [(1, rig.port)]
        assert answer.cluster_authorized_operations == sum(
            1 << bit for bit in (5, 7, 8, 9, 10, 11, 12)
        )
        for endpoint_type, code in ((2, 114), (7, 115)):
            answer = await client.ask(CLUSTER, 1, endpoint_type=endpoint_type)
            assert (answer.error_code, answer.brokers) == (code, ())


async def test_describe_configs_of_broker_topic_and_group() -> None:
    wire = request_schema(CONFIGS, 4)

    def resource(kind: int, name: str, keys: tuple[str, ...] | None = None) -> Any:
        return wire.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=keys
        )

    settings = CoordinatorSettings(group_consumer_session_timeout_ms=46_000)
    async with run_rig(coordinator=settings) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        asked = (
            resource(4, "1"),
            resource(4, ""),
            resource(4, "2"),
            resource(2, "t", ("cleanup.policy",)),
            resource(2, "absent"),
            resource(32, "g"),
            resource(8, "1"),
        )
        answer = await client.ask(CONFIGS, 4, resources=asked, include_synonyms=True)
        codes = [row.error_code for row in answer.results]
        assert codes == [0, 0, 42, 0, 3, 0, 42]
        broker = {row.name: row for row in answer.results[0].configs}
        timeout = broker["group.consumer.session.timeout.ms"]
        assert (timeout.value, timeout.config_source, timeout.config_type) == ("46000", 4, 3)
        assert [row.name for row in timeout.synonyms] == [timeout.name]
        assert broker["group.consumer.heartbeat.interval.ms"].config_source == 5
        assert broker["group.consumer.assignors"].value == "uniform,range"
        assert broker["gateway.park.ms"].value == "500"
        assert broker["offsets.topic.num.partitions"].value == "50"
        assert not [row for row in broker.values() if "(" in (row.value or "")], "Python's"
        assert answer.results[1].configs == ()
        assert [row.value for row in answer.results[3].configs] == ["delete"]
        group = {row.name: row.value for row in answer.results[5].configs}
        assert group["consumer.session.timeout.ms"] == "46000"
        for version in range(1, 4):
            plain = request_schema(CONFIGS, version).DescribeConfigsResource
            row = plain(resource_type=32, resource_name="g", configuration_keys=None)
            answer = await client.ask(CONFIGS, version, resources=(row,))
            assert {config.name for config in answer.results[0].configs} == set(group)
