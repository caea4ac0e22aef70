"""What is not served here is passed on to the cluster, and its responses back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gateway.apis.fronted.passed_apis import PASSED, PASSED_APIS
from model.access.quotas import QuotaEntity
from model.errors import ErrorCode, NotCoordinator
from security.quotas.client_quotas import ClientQuotas
from tests.support.gateway.fake_coordinator import VirtualClock
from tests.support.gateway.scripted_front import OWN_ID, Passed, ScriptedFront, make_response
from tests.support.gateway.wire_rig import Rig, run_rig, with_settings
from tests.support.waiting import until
from tests.support.wire.connection import Connection
from tests.support.wire.frames import make_frame

METADATA, CREATE_TOPICS, HEARTBEAT, DESCRIBE_CLUSTER = 3, 19, 12, 60
BROKER = {"node_id": 1, "host": "real", "port": 9092, "rack": "r"}


def describe(asked: Passed) -> dict[str, Any]:
    assert asked.key == METADATA
    return {"brokers": [BROKER], "controller_id": 1, "cluster_id": "c"}


@pytest.mark.parametrize("version", range(14))
async def test_metadata_names_the_relays_and_this_node(version: int) -> None:
    def answer(asked: Passed) -> dict[str, Any]:
        row = {name: BROKER[name] for name in ("node_id", "host", "port")}
        return {"brokers": [row]}

    front = ScriptedFront(answer)
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        response = await connection.ask(METADATA, version)
        seen = [(row.node_id, row.host, row.port) for row in response.brokers]
        assert seen == [(1, "relay-1", 9001), (OWN_ID, "127.0.0.1", rig.port)]
    assert front.links[0].is_closed


@pytest.mark.parametrize("version", range(3))
async def test_describe_cluster_names_the_relays_and_this_node(version: int) -> None:
    row = {"broker_id": 1, "host": "real", "port": 9092}
    front = ScriptedFront(lambda asked: {"brokers": [row], "cluster_id": "c"})
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        response = await connection.ask(DESCRIBE_CLUSTER, version)
        seen = [(row.broker_id, row.host, row.port) for row in response.brokers]
        assert seen == [(1, "relay-1", 9001), (OWN_ID, "127.0.0.1", rig.port)]


async def test_node_endpoints_of_produce_and_fetch_name_the_relays() -> None:
    row = {"node_id": 1, "host": "real", "port": 9092}
    front = ScriptedFront(lambda asked: {"node_endpoints": [row]})
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        for key, version in ((0, 13), (1, 17)):
            response = await connection.ask(key, version, **({"acks": -1} if key == 0 else {}))
            (seen,) = response.node_endpoints
            assert (seen.node_id, seen.host, seen.port) == (1, "relay-1", 9001)


async def test_every_passed_request_arrives_byte_for_byte_and_its_response_too() -> None:
    """All that is passed on, in every version, over one link."""
    front = ScriptedFront(lambda asked: {})
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        count = 0
        for api in PASSED_APIS:
            for version in api.versions:
                if api.key in (METADATA, DESCRIBE_CLUSTER):
                    continue
                fields = {"acks": 1} if api.key == 0 else {}
                count += 1
                sent = make_frame(api.key, version, correlation_id=count, **fields)
                connection.writer.write(sent)
                response = await connection.read_frame()
                assert front.asked[-1].frame == sent
                assert response == make_response(front.asked[-1], {})[4:]
    assert len(front.links) == 1
    assert count > 100
    assert len(front.passed_on) == count
    assert set(front.passed_on) == {asked.key for asked in front.asked}


@pytest.mark.parametrize("version", range(3, 14))
async def test_a_produce_request_without_acks_ends_the_connection(version: int) -> None:
    """This node leads nothing, and there is no response to say so in."""
    front = ScriptedFront()
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        connection.send(0, version, acks=0, transactional_id="t" * 200)
        assert await connection.is_closed()
    assert front.asked == []


async def test_responses_leave_in_the_order_of_the_requests() -> None:
    """A request that is served here waits for one that the cluster has not answered."""
    front = ScriptedFront()
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        first = connection.send(METADATA, 9)
        second = connection.send(HEARTBEAT, 4, group_id="g", member_id="m", generation_id=1)
        third = connection.send(CREATE_TOPICS, 7)
        await until(lambda: front.asked)
        assert len(front.asked) == 1, "requests are passed on one by one"
        front.links[0].put(make_response(front.asked[0], {"brokers": [BROKER]}))
        await until(lambda: len(front.asked) == 2)
        front.links[0].put(make_response(front.asked[1], {}))
        seen = [(await connection.read(*api))[0] for api in ((3, 9), (12, 4), (19, 7))]
    assert seen == [first, second, third]


async def test_a_client_that_goes_closes_its_link() -> None:
    front = ScriptedFront()
    async with run_rig(front=front) as rig:
        connection = await rig.connect()
        connection.send(METADATA, 9)
        await until(lambda: front.asked)
        connection.close()
        await until(lambda: front.links[0].is_closed)
        assert rig.server.connections == 0


async def test_the_end_of_a_link_closes_the_client_that_waits() -> None:
    front = ScriptedFront()
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        connection.send(METADATA, 9)
        await until(lambda: front.asked)
        front.links[0].put(None)
        assert await connection.is_closed()


async def test_a_link_that_ends_while_nothing_waits_is_opened_again() -> None:
    front = ScriptedFront(describe)
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        await connection.ask(METADATA, 9)
        front.links[0].put(None)
        await until(lambda: front.links[0].is_closed)
        await connection.ask(METADATA, 9)
    assert len(front.links) == 2


async def test_a_cluster_that_cannot_be_reached_closes_the_client() -> None:
    front = ScriptedFront()
    front.is_reachable = False
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        connection.send(METADATA, 9)
        assert await connection.is_closed()
        assert rig.server.refusals == {"cluster-unreachable": 1}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda asked: b"\x00\x00\x00\x04" + b"\x7f\x00\x00\x00",
        lambda asked: make_response(asked, {"brokers": [BROKER]})[:20],
        lambda asked: b"\x00\x00\x00\x00",
    ],
    ids=["another correlation id", "cut off", "empty"],
)
async def test_an_answer_that_makes_no_sense_closes_the_client(
    spoil: Callable[[Passed], bytes],
) -> None:
    front = ScriptedFront(spoil)
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        connection.send(METADATA, 9)
        assert await connection.is_closed()
        await until(lambda: front.links[0].is_closed)


async def test_a_link_that_never_answers_is_given_up() -> None:
    front = ScriptedFront()
    clock = VirtualClock()
    async with run_rig(front=front, clock=clock) as rig, await rig.connect() as connection:
        connection.send(METADATA, 9)
        await until(lambda: front.asked)
        clock.advance(100)
        assert not front.links[0].is_closed
        clock.advance(30)
        assert front.links[0].is_closed
        assert await connection.is_closed()


async def test_a_passed_login_is_the_link_and_a_new_one_takes_its_place() -> None:
    front = ScriptedFront(describe)
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        await connection.ask(METADATA, 9)
        assert rig.server._shared is not None
        served: Any
        (served,) = rig.server._shared.connections
        served.passed = await front.open(served)
        await connection.ask(METADATA, 9)
        assert [link.is_closed for link in front.links] == [True, False]
    await until(lambda: front.links[1].is_closed)


async def test_over_a_quota_the_response_of_the_cluster_says_for_how_long() -> None:
    quotas = ClientQuotas()
    quotas.index.put(QuotaEntity("ANONYMOUS"), {"request_rate": 1.0})
    front = ScriptedFront(describe)
    async with run_rig(front=front, quotas=quotas) as rig, await rig.connect() as connection:
        for _ in range(10):
            assert (await connection.ask(METADATA, 9)).throttle_time == 0
        assert (await connection.ask(METADATA, 9)).throttle_time > 0


async def test_a_server_that_stops_waits_for_what_the_cluster_has_not_answered() -> None:
    front = ScriptedFront()
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        sent = connection.send(METADATA, 9)
        await until(lambda: front.asked)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(rig.server.drain(30))
            assert rig.server._shared is not None
            served: Any
            (served,) = rig.server._shared.connections
            await until(lambda: served._is_draining)
            front.links[0].put(make_response(front.asked[0], {"brokers": [BROKER]}))
        assert (await connection.read(METADATA, 9))[0] == sent
        assert await connection.is_closed()


async def test_requests_of_the_cluster_count_against_what_may_be_queued() -> None:
    front = ScriptedFront()
    settings = with_settings(queued_max_request_bytes=50_000)
    async with run_rig(settings, front=front) as rig, await rig.connect() as connection:
        connection.send(CREATE_TOPICS, 7, topics=[{"name": "x" * 200}] * 300)
        assert await connection.is_closed()
        assert rig.server.refusals == {"queued-bytes": 1}
    assert front.asked == []


async def test_metadata_of_ten_thousand_topics() -> None:
    topics = [
        {
            "name": f"topic-{number}",
            "topic_id": number.to_bytes(16, "big"),
            "partitions": [{"partition_index": 0, "leader_id": 1}] * 12,
        }
        for number in range(1, 10_001)
    ]
    front = ScriptedFront(lambda asked: {"brokers": [BROKER], "topics": topics})
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        response = await connection.ask(METADATA, 12)
    assert len(response.topics) == 10_000
    assert [row.node_id for row in response.brokers] == [1, OWN_ID]


async def test_an_api_that_brokers_send_each_other_is_not_passed_on() -> None:
    assert not PASSED.keys() & {4, 5, 6, 7, 27, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73}
    front = ScriptedFront(lambda asked: {})
    async with run_rig(front=front) as rig, await rig.connect() as connection:
        connection.send(56, 3)
        assert await connection.is_closed()
    assert front.asked == []


class Elsewhere:
    """A coordinator that has no group; all else is that of another one."""

    def __init__(self, rig: Rig) -> None:
        self._coordinator = rig.runtime

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coordinator, name)

    def submit(self, command: Any, reply: Callable[[Any], None]) -> None:
        reply(NotCoordinator("The group is elsewhere."))


MEMBER = {"group_id": "g", "member_id": "m", "generation_id": 1}
COMMIT = {"topics": [{"name": "t", "partitions": [{}]}]}
GROUP_REQUESTS: tuple[tuple[int, range, dict[str, Any]], ...] = (
    (8, range(2, 10), {"group_id": "g", **COMMIT}),
    (9, range(2, 8), {"group_id": "g", "topics": None}),
    (9, range(8, 10), {"groups": [{"group_id": "g", "topics": None}]}),
    (11, range(10), {"group_id": "g", "protocol_type": "c", "protocols": [{"name": "r"}]}),
    (12, range(5), MEMBER),
    (13, range(3), {"group_id": "g", "member_id": "m"}),
    (13, range(3, 6), {"group_id": "g", "members": [{"member_id": "m"}]}),
    (14, range(5), MEMBER),
    (14, range(5, 6), {**MEMBER, "protocol_type": "consumer", "protocol_name": "r"}),
    (15, range(7), {"groups": ["g"]}),
    (28, range(6), {"group_id": "g", "transactional_id": "x", "producer_id": 1, **COMMIT}),
    (42, range(3), {"groups_names": ["g"]}),
    (47, range(1), {"group_id": "g", "topics": []}),
    (68, range(2), {"group_id": "g", "member_id": "m", "member_epoch": 1}),
    (69, range(2), {"group_ids": ["g"]}),
)


def find_codes(entity: Any) -> set[int]:
    """All error codes in a response."""
    codes: set[int] = set()
    for name in entity.__dataclass_fields__:
        value = getattr(entity, name)
        if name == "error_code":
            codes.add(value)
        for item in value if isinstance(value, tuple) else ():
            if hasattr(item, "__dataclass_fields__"):
                codes |= find_codes(item)
    return codes


@pytest.mark.parametrize(("key", "versions", "fields"), GROUP_REQUESTS)
async def test_group_requests_hear_that_the_group_is_elsewhere(
    key: int, versions: range, fields: dict[str, Any]
) -> None:
    front = ScriptedFront()
    async with run_rig(front=front) as rig:
        await rig.create_topic("t", 1)
        rig.server._coordinator = Elsewhere(rig)
        rig.server._shared = None
        port = await rig.server.start("127.0.0.1", 0)
        async with await Connection.open(f"127.0.0.1:{port}") as connection:
            for version in versions:
                response = await connection.ask(key, version, **fields)
                assert ErrorCode.NOT_COORDINATOR in find_codes(response), version
    assert front.asked == []
