"""The cluster as the client sees it: brokers that go, come and move, and coordinators."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.codec.client_frames import ClientRequest, known_versions
from tests.support.upstream.fake_broker import (
    API_VERSIONS,
    COORDINATOR_NOT_AVAILABLE,
    FIND_COORDINATOR,
    METADATA,
    NOT_COORDINATOR,
    UNSUPPORTED_VERSION,
    Act,
    Asked,
    FakeBroker,
    FakeCluster,
)
from tests.support.waiting import until
from upstream.cluster.cluster import ClusterUnreachable, CoordinatorRefused, NotSent, NotServed
from upstream.cluster.cluster_client import ClusterClient
from upstream.cluster.cluster_settings import ClusterSettings

COMMIT, DESCRIBE, CREATE_TOPICS = 8, 15, 19
GROUP_AUTHORIZATION_FAILED, NOT_CONTROLLER = 30, 41
DESCRIBE_G = ClientRequest(DESCRIBE, {"groups": ("g",)})


@asynccontextmanager
async def started(cluster: FakeCluster, **settings: Any) -> AsyncIterator[ClusterClient]:
    client = ClusterClient(
        ClusterSettings(cluster.addresses, **{"connect_timeout_ms": 2_000, **settings})
    )
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


async def stop(client: ClusterClient, broker: FakeBroker) -> None:
    """Stop a broker, and wait until the client has seen it."""
    await broker.stop()
    await until(lambda: not client._peers.find(broker.node_id).is_connected)


def describe_by_node(asked: Asked) -> dict[str, Any]:
    return {"groups": ({"group_id": "g", "protocol_type": str(asked.broker.node_id)},)}


def answering_node(answer: Any) -> int:
    return int(answer.groups[0].protocol_type)


async def test_knows_the_cluster_and_the_versions_of_all_brokers() -> None:
    async with FakeCluster(3) as cluster:
        cluster[2].versions[METADATA] = range(12)
        del cluster[3].versions[CREATE_TOPICS]
        cluster.controller_id = 2
        async with started(cluster) as client:
            assert client.cluster_id == "fake-cluster"
            assert client.controller_id == 2
            assert sorted(client.brokers) == [1, 2, 3]
            assert client.versions[METADATA] == range(12)
            assert CREATE_TOPICS not in client.versions
            assert client.is_reachable
            assert client.has_topic_ids
            assert not client.offers_consumer_protocol
            assert not client.has_consumer_protocol


async def test_a_cluster_with_the_consumer_protocol_on() -> None:
    async with FakeCluster(2) as cluster:
        code = 0
        cluster.answer(69, lambda asked: {"groups": ({"group_id": "muster", "error_code": code},)})
        for broker in cluster.brokers.values():
            broker.versions[69] = known_versions(69)
        async with started(cluster) as client:
            assert not client.has_consumer_protocol
        for broker in cluster.brokers.values():
            broker.features["group.version"] = 1
        async with started(cluster) as client:
            assert client.has_consumer_protocol
        # Advertised all the same, and turned off by group.coordinator.rebalance.protocols.
        code = UNSUPPORTED_VERSION
        async with started(cluster) as client:
            assert not client.has_consumer_protocol


async def test_brokers_before_kip_511_are_asked_for_their_versions_again() -> None:
    async with FakeCluster() as cluster:
        cluster[1].versions[API_VERSIONS] = range(3)
        cluster[1].versions[METADATA] = range(9)
        cluster[1].answers[DESCRIBE] = describe_by_node
        async with started(cluster) as client:
            assert answering_node(await client.ask(DESCRIBE_G)) == 1
            assert not client.has_topic_ids


async def test_fields_that_a_version_lacks_are_dropped() -> None:
    async with FakeCluster() as cluster:
        cluster[1].answers[DESCRIBE] = describe_by_node
        cluster[1].versions[DESCRIBE] = range(2)
        async with started(cluster) as client:
            fields = {"groups": ("g",), "include_authorized_operations": True}
            await client.ask(ClientRequest(DESCRIBE, fields))
            last = cluster[1].asked[-1]
            assert (last.version, last.request.groups) == (1, ("g",))
            assert last.client_id == "muster"
            await client.ask(ClientRequest(DESCRIBE, fields, version_max=0))
            assert cluster[1].asked[-1].version == 0


async def test_an_api_that_a_broker_lacks_is_refused_at_once() -> None:
    async with FakeCluster() as cluster, started(cluster) as client:
        with pytest.raises(NotServed, match="does not serve ListTransactions"):
            await client.ask(ClientRequest(66, {}), timeout_ms=60_000)
        assert client.is_reachable


async def test_a_named_broker_is_asked_and_requests_share_its_connection() -> None:
    async with FakeCluster(3) as cluster:
        cluster.answer(DESCRIBE, describe_by_node)
        async with started(cluster) as client:
            before = cluster[2].connections
            answers = await asyncio.gather(*(client.ask(DESCRIBE_G, node_id=2) for _ in range(50)))
            assert {answering_node(answer) for answer in answers} == {2}
            assert cluster[2].connections == before


async def test_any_broker_stands_in_for_one_that_is_down() -> None:
    async with FakeCluster(3) as cluster:
        cluster.answer(DESCRIBE, describe_by_node)
        async with started(cluster) as client:
            await stop(client, cluster[1])
            await stop(client, cluster[3])
            for _ in range(6):
                assert answering_node(await client.ask(DESCRIBE_G)) == 2


async def test_a_request_waits_for_a_broker_that_comes_back() -> None:
    async with FakeCluster(2) as cluster:
        cluster.answer(DESCRIBE, describe_by_node)
        async with started(cluster) as client:
            await stop(client, cluster[2])
            asking = asyncio.create_task(client.ask(DESCRIBE_G, node_id=2))
            await until(lambda: not client.is_reachable or asking.done())
            await cluster[2].start()
            assert answering_node(await asking) == 2


async def test_a_request_to_a_broker_that_stays_away_ends_in_time() -> None:
    async with FakeCluster(2) as cluster, started(cluster) as client:
        await stop(client, cluster[2])
        with pytest.raises(NotSent):
            await client.ask(DESCRIBE_G, node_id=2, timeout_ms=300)
        with pytest.raises(NotSent, match="no broker 77"):
            await client.ask(DESCRIBE_G, node_id=77, timeout_ms=100)


async def test_what_may_have_been_sent_is_not_asked_again() -> None:
    async with FakeCluster(2) as cluster:
        cluster.answer(DESCRIBE, lambda asked: Act.CLOSE)
        async with started(cluster) as client:
            with pytest.raises(ClusterUnreachable) as caught:
                await client.ask(DESCRIBE_G)
            assert not isinstance(caught.value, NotSent)
            assert cluster.count(DESCRIBE) == 1


async def test_brokers_move_come_and_go() -> None:
    async with FakeCluster(2) as cluster:
        cluster.answer(DESCRIBE, describe_by_node)
        async with started(cluster) as client:
            changes: list[list[int]] = []
            client.on_brokers_changed(lambda: changes.append(sorted(client.brokers)))
            await stop(client, cluster[2])
            cluster[2].port = 0
            await cluster[2].start()
            assert answering_node(await client.ask(DESCRIBE_G, node_id=2)) == 2
            assert client.brokers[2].port == cluster[2].port

            newer = cluster.brokers[3] = FakeBroker(3, cluster)
            newer.answers[DESCRIBE] = describe_by_node
            await newer.start()
            await client.refresh()
            assert answering_node(await client.ask(DESCRIBE_G, node_id=3)) == 3

            gone = cluster.brokers.pop(1)
            await client.refresh()
            await gone.stop()
            assert sorted(client.brokers) == [2, 3]
            assert changes == [[1, 2], [1, 2, 3], [2, 3]]
            await client.refresh()
            assert len(changes) == 3


async def test_a_callback_that_fails_does_not_end_the_following() -> None:
    async with FakeCluster() as cluster, started(cluster, refresh_ms=20) as client:
        failures: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, said: failures.append(said))
        client.on_brokers_changed(lambda: {}["nothing"])
        cluster.brokers[2] = FakeBroker(2, cluster)
        await cluster[2].start()
        await until(lambda: failures)
        cluster.controller_id = 2
        await until(lambda: client.controller_id == 2)


async def test_a_broker_that_has_gone_ends_its_requests_first() -> None:
    async with FakeCluster(2) as cluster:
        go_on = asyncio.Event()

        async def wait(asked: Asked) -> dict[str, Any]:
            await go_on.wait()
            return describe_by_node(asked)

        cluster[1].answers[DESCRIBE] = wait
        async with started(cluster) as client:
            asking = asyncio.create_task(client.ask(DESCRIBE_G, node_id=1))
            await until(lambda: cluster[1].count(DESCRIBE))
            gone = cluster.brokers.pop(1)
            await client.refresh()
            go_on.set()
            assert answering_node(await asking) == 1
            await until(lambda: not gone.open)
            await gone.stop()


async def test_the_controller_is_looked_for_when_a_broker_is_not_it() -> None:
    async with FakeCluster(2) as cluster:
        row = {"name": "t", "error_code": NOT_CONTROLLER}
        cluster.answer(CREATE_TOPICS, lambda asked: {"topics": (row,)})
        async with started(cluster) as client:
            cluster.controller_id = 2
            await client.ask(ClientRequest(CREATE_TOPICS, {"topics": ()}), node_id=1)
            await until(lambda: client.controller_id == 2)


async def test_brokers_are_read_again_every_so_often() -> None:
    async with FakeCluster() as cluster, started(cluster, refresh_ms=20) as client:
        cluster.controller_id = 9
        await until(lambda: client.controller_id == 9)


async def test_another_cluster_is_not_asked_anything() -> None:
    async with FakeCluster(2) as cluster, started(cluster) as client:
        cluster.cluster_id = "another"
        await client.refresh()
        assert client.fault is not None
        assert "another" in client.fault
        assert "fake-cluster" in client.fault
        assert not client.is_reachable
        assert client.cluster_id == "fake-cluster"
        with pytest.raises(NotSent, match="another"):
            await client.ask(DESCRIBE_G, node_id=1, timeout_ms=60_000)
        with pytest.raises(NotSent, match="another"):
            await client.open_raw(1)
        await until(lambda: not any(broker.open for broker in cluster.brokers.values()))


async def test_a_cluster_that_does_not_always_say_its_id_is_no_other_one() -> None:
    async with FakeCluster() as cluster, started(cluster) as client:
        cluster.cluster_id = None
        await client.refresh()
        assert (client.cluster_id, client.fault) == ("fake-cluster", None)


async def test_a_broker_that_knows_no_brokers_yet_changes_nothing() -> None:
    async with FakeCluster(2) as cluster, started(cluster) as client:
        cluster.answer(METADATA, lambda asked: {"cluster_id": "fake-cluster"})
        with pytest.raises(ClusterUnreachable, match="does not know"):
            await client.refresh()
        assert sorted(client.brokers) == [1, 2]
        assert client.fault is None


async def test_the_coordinator_is_found_and_remembered() -> None:
    async with FakeCluster(3) as cluster:
        cluster.answer(DESCRIBE, describe_by_node)
        cluster.coordinators["g"] = 3
        async with started(cluster) as client:
            for _ in range(3):
                assert answering_node(await client.ask_coordinator("g", DESCRIBE_G)) == 3
            assert cluster.count(FIND_COORDINATOR) == 1
            cluster.coordinators["g"] = 2
            assert await client.find_coordinator("g") == 3
            assert await client.find_coordinator("g", again=True) == 2


@pytest.mark.parametrize("version", [0, 3, 6])
async def test_find_coordinator_in_old_versions(version: int) -> None:
    async with FakeCluster(2) as cluster:
        cluster.coordinators["g"] = 2
        for broker in cluster.brokers.values():
            broker.versions[FIND_COORDINATOR] = range(version + 1)
        async with started(cluster) as client:
            assert await client.find_coordinator("g") == 2


async def test_a_coordinator_that_moves_is_followed() -> None:
    async with FakeCluster(2) as cluster:
        for broker in cluster.brokers.values():
            broker.versions[COMMIT] = range(2, 10)
        row = {"partition_index": 0, "error_code": NOT_COORDINATOR}
        moved = {"topics": ({"name": "t", "partitions": (row, row)},)}

        def refuse(asked: Asked) -> dict[str, Any]:
            cluster.coordinators["g"] = 2
            return moved

        cluster[1].answers[COMMIT] = refuse
        cluster[2].answers[COMMIT] = lambda asked: {"topics": ()}
        async with started(cluster) as client:
            request = ClientRequest(COMMIT, {"group_id": "g"})
            assert (await client.ask_coordinator("g", request)).topics == ()
            assert cluster[1].count(COMMIT) == cluster[2].count(COMMIT) == 1


async def test_an_error_in_one_part_is_the_callers() -> None:
    rows = tuple({"partition_index": at, "error_code": code} for at, code in enumerate((16, 0)))
    async with FakeCluster() as cluster:
        cluster[1].versions[COMMIT] = range(2, 10)
        cluster[1].answers[COMMIT] = lambda asked: {"topics": ({"name": "t", "partitions": rows},)}
        async with started(cluster) as client:
            answer = await client.ask_coordinator("g", ClientRequest(COMMIT, {"group_id": "g"}))
            assert len(answer.topics[0].partitions) == 2
            assert cluster[1].count(COMMIT) == 1


async def test_when_the_time_is_over_the_last_answer_is_returned() -> None:
    async with FakeCluster() as cluster:
        row = {"group_id": "g", "error_code": NOT_COORDINATOR}
        cluster[1].answers[DESCRIBE] = lambda asked: {"groups": (row,)}
        async with started(cluster) as client:
            answer = await client.ask_coordinator("g", DESCRIBE_G, timeout_ms=400)
            assert answer.groups[0].error_code == NOT_COORDINATOR
            assert cluster[1].count(DESCRIBE) > 1


async def test_a_coordinator_that_is_down_is_looked_for_elsewhere() -> None:
    async with FakeCluster(2) as cluster:
        cluster.answer(DESCRIBE, describe_by_node)
        cluster.coordinators["g"] = 2
        async with started(cluster) as client:
            await client.ask_coordinator("g", DESCRIBE_G)
            await stop(client, cluster[2])
            cluster.coordinators["g"] = 1
            assert answering_node(await client.ask_coordinator("g", DESCRIBE_G)) == 1


async def test_a_group_without_a_coordinator_yet_is_waited_for() -> None:
    async with FakeCluster() as cluster:
        cluster.answer(DESCRIBE, describe_by_node)
        cluster.coordinators["g"] = 5
        async with started(cluster) as client:
            with pytest.raises(ClusterUnreachable, match=f"error {COORDINATOR_NOT_AVAILABLE}"):
                # Long enough for a first answer also on a machine that is busy.
                await client.ask_coordinator("g", DESCRIBE_G, timeout_ms=1_000)
            asking = asyncio.create_task(client.ask_coordinator("g", DESCRIBE_G))
            seen = cluster.count(FIND_COORDINATOR)
            await until(lambda: cluster.count(FIND_COORDINATOR) > seen)
            cluster.coordinators["g"] = 1
            assert answering_node(await asking) == 1


async def test_a_right_that_is_missing_is_told_at_once() -> None:
    row = {"key": "g", "error_code": GROUP_AUTHORIZATION_FAILED, "error_message": "no"}
    async with FakeCluster() as cluster:
        cluster[1].answers[FIND_COORDINATOR] = lambda asked: {"coordinators": (row,)}
        async with started(cluster) as client:
            with pytest.raises(CoordinatorRefused) as caught:
                await client.ask_coordinator("g", DESCRIBE_G)
            assert caught.value.code == GROUP_AUTHORIZATION_FAILED


async def test_a_link_is_a_connection_of_its_own() -> None:
    async with FakeCluster() as cluster:
        cluster[1].answers[DESCRIBE] = describe_by_node
        async with started(cluster) as client:
            before = cluster[1].connections
            link = await client.open_link(1)
            assert answering_node(await link.ask(DESCRIBE_G)) == 1
            assert cluster[1].connections == before + 1
            link.close()
            with pytest.raises(NotSent):
                await link.ask(DESCRIBE_G)
            with pytest.raises(NotSent, match="no broker 4"):
                await client.open_link(4)


async def test_what_waits_on_a_link_ends_with_it() -> None:
    async with FakeCluster() as cluster:
        cluster[1].answers[DESCRIBE] = lambda asked: Act.SILENCE
        async with started(cluster) as client:
            link = await client.open_link(1)
            asking = asyncio.create_task(link.ask(DESCRIBE_G))
            await until(lambda: cluster[1].count(DESCRIBE))
            link.close()
            with pytest.raises(ClusterUnreachable, match="closed"):
                await asking


async def test_a_caller_that_gives_up_leaves_the_connection_to_others() -> None:
    async with FakeCluster() as cluster:
        go_on = asyncio.Event()

        async def wait_once(asked: Asked) -> dict[str, Any]:
            await go_on.wait()
            return describe_by_node(asked)

        cluster[1].answers[DESCRIBE] = wait_once
        async with started(cluster) as client:
            number = cluster[1].connections
            first = asyncio.create_task(client.ask(DESCRIBE_G, node_id=1))
            second = asyncio.create_task(client.ask(DESCRIBE_G, node_id=1))
            await until(lambda: cluster[1].count(DESCRIBE))
            first.cancel()
            with pytest.raises(ClusterUnreachable, match="in time"):
                await client.ask(DESCRIBE_G, node_id=1, timeout_ms=20)
            go_on.set()
            assert answering_node(await second) == 1
            assert cluster[1].connections == number


async def test_stopping_ends_what_waits() -> None:
    async with FakeCluster() as cluster:
        cluster[1].answers[DESCRIBE] = lambda asked: Act.SILENCE
        async with started(cluster) as client:
            asking = asyncio.create_task(client.ask(DESCRIBE_G, node_id=1))
            await until(lambda: cluster[1].count(DESCRIBE))
            await client.stop()
            with pytest.raises(ClusterUnreachable):
                await asking
