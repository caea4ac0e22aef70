"""ApiVersions in front of a cluster, and APIs that are served here or there."""

from __future__ import annotations

from typing import Any

from gateway.apis.api_registry import APIS
from gateway.fronting.offered import compute_offered
from tests.support.gateway.scripted_front import OWN_ID, Passed, ScriptedFront
from tests.support.gateway.wire_rig import Rig, run_rig

API_VERSIONS, METADATA, DESCRIBE_CONFIGS = 18, 3, 32
TOPIC, BROKER, GROUP = 2, 4, 32
SOFTWARE = {"client_software_name": "c", "client_software_version": "1"}


async def greet(rig: Rig) -> dict[int, tuple[int, int]]:
    async with await rig.connect() as connection:
        response = await connection.ask(API_VERSIONS, 4, **SOFTWARE)
    return {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}


async def test_groups_are_offered_as_alone_and_all_else_as_the_brokers_have_it() -> None:
    front = ScriptedFront()
    front.versions = {0: range(9), METADATA: range(11), 10: range(4), 19: range(5, 40)}
    own = {api.key: api for api in APIS}
    async with run_rig(front=front) as rig:
        seen = await greet(rig)
    groups = {8, 9, 11, 12, 13, 14, 15, 16, 17, 18, 36, 42, 47, 68, 69}
    assert seen.keys() == groups | front.versions.keys()
    assert all(seen[key] == own[key].advertised for key in groups)
    assert seen[0] == (0, 8)
    assert seen[METADATA] == (0, 10)
    assert seen[10] == (0, 3)
    assert seen[19] == (5, 7)


async def test_the_consumer_protocol_is_offered_only_where_it_can_be_served() -> None:
    front = ScriptedFront()
    front.offers_consumer_protocol = False
    async with run_rig(front=front) as rig:
        assert not {68, 69} & (await greet(rig)).keys()
        async with await rig.connect() as connection:
            connection.send(68, 1, group_id="g", member_id="m", member_epoch=0)
            assert await connection.is_closed()
        front.offers_consumer_protocol = True
        assert {68, 69} <= (await greet(rig)).keys()


async def test_a_client_is_not_greeted_before_the_versions_are_known() -> None:
    front = ScriptedFront()
    front.versions = {}
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        connection.send(API_VERSIONS, 4, **SOFTWARE)
        assert await connection.is_closed()


async def test_features_are_left_to_the_brokers() -> None:
    front = ScriptedFront()
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        for offers in (True, False):
            front.offers_consumer_protocol = offers
            response = await connection.ask(API_VERSIONS, 4, **SOFTWARE)
            names = [row.name for row in response.finalized_features]
            assert names == ["group.version"] * offers
            assert response.finalized_features_epoch == 0


async def test_a_version_that_a_broker_no_longer_serves_is_refused() -> None:
    front = ScriptedFront(lambda asked: {})
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        await connection.ask(19, 7)
        front.versions = {19: range(7)}
        connection.send(19, 7)
        assert await connection.is_closed()
        assert rig.server.refusals == {"unsupported": 1}


def test_a_cluster_that_is_newer_or_older_than_all_that_is_known() -> None:
    front = ScriptedFront()
    front.versions = {19: range(30, 40), 20: range(1)}
    assert not compute_offered(front, 19, range(2, 8))
    assert not compute_offered(front, 20, range(1, 7))
    assert not compute_offered(front, 21, range(3))


async def test_configs_of_groups_and_of_this_node_are_here() -> None:
    def answer(asked: Passed) -> dict[str, Any]:
        assert asked.key == DESCRIBE_CONFIGS
        rows = asked.request.resources
        return {
            "results": [
                {"resource_type": row.resource_type, "resource_name": row.resource_name}
                for row in rows
            ]
        }

    front = ScriptedFront(answer)
    here = [
        {"resource_type": GROUP, "resource_name": "g"},
        {"resource_type": BROKER, "resource_name": str(OWN_ID)},
    ]
    there = [{"resource_type": TOPIC, "resource_name": "t"}]
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        response = await connection.ask(DESCRIBE_CONFIGS, 4, resources=here)
        assert [bool(row.configs) for row in response.results] == [True, True]
        assert front.asked == []
        for resources in (there, [{"resource_type": BROKER, "resource_name": "1"}]):
            response = await connection.ask(DESCRIBE_CONFIGS, 4, resources=resources)
            assert [row.resource_name for row in response.results] == [
                row["resource_name"] for row in resources
            ]
    assert len(front.asked) == 2


async def test_what_each_node_has_of_its_own_is_empty_here() -> None:
    front = ScriptedFront()
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        for version in range(1, 5):
            assert (await connection.ask(35, version)).results == ()
        for version in range(3):
            assert (await connection.ask(66, version)).transaction_states == ()
    assert front.asked == []


async def test_config_resources_of_groups_alone_are_here() -> None:
    front = ScriptedFront(lambda asked: {})
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        await connection.ask(74, 1, resource_types=[GROUP])
        assert front.asked == []
        await connection.ask(74, 1, resource_types=[GROUP, TOPIC])
        await connection.ask(74, 0)
    assert len(front.asked) == 2
