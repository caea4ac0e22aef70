"""The topic APIs over a socket: waiting for records, authorization, errors, durability."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from coordinator.runtime.loop.slices import run_at_once
from gateway.apis.topics import k01_fetch
from gateway.apis.topics.k19_create_topics import make_topic_id
from gateway.topics.topic_catalogue import PartitionKey
from model.access.acls import Operation, ResourceType
from model.caller import INTERNAL
from model.commands.topics import DeleteTopic
from model.errors import ErrorCode
from model.ids import TopicName
from storage.codec.batch_encoding import encode_batch
from tests.support.authorizers import Question, Rights
from tests.support.waiting import until
from tests.support.wire.blocking import NamedClient
from tests.unit.gateway.apis.prober import list_batches, topic
from tests.unit.gateway.apis.topics_rig import TOPIC_APIS, TopicsRig, run, run_topics

BATCH = encode_batch(0, [(b"k", b"v")], int(time.time() * 1000), leader_epoch=-1)


def produce_to(client: NamedClient, *names: str, acks: int = 1, records: bytes = BATCH) -> Any:
    data = [{"index": 0, "records": records}]
    fields: dict[str, Any] = {
        "transactional_id": None,
        "acks": acks,
        "timeout": 1_000,
        "topic_data": [{"name": name, "partition_data": data} for name in names],
    }
    if acks == 0:
        client.send("produce", 9, **fields)
        return None
    return client.ask("produce", 9, **fields)


def fetch_fields(*names: str, max_wait: int = 600_000, min_bytes: int = 1) -> dict[str, Any]:
    asked = [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}]
    return {
        "replica_id": -1,
        "max_wait": max_wait,
        "min_bytes": min_bytes,
        "max_bytes": 1 << 20,
        "isolation_level": 0,
        "session_id": 0,
        "session_epoch": -1,
        "topics": [{"topic": name, "partitions": asked} for name in names],
        "forgotten_topics_data": [],
        "rack_id": "",
    }


def fetched(answer: dict[str, Any]) -> dict[str, Any]:
    """By topic: the batches, or the error."""
    found = {}
    for row in answer["responses"]:
        (partition,) = row["partitions"]
        found[row["topic"]] = partition["error_code"] or list_batches(partition["records"])
    return found


async def until_watched(rig: TopicsRig, count: int = 1) -> None:
    """Wait until this many fetches wait for records."""
    await until(
        lambda: len(rig.topics._watches) == count,
        lambda: f"{count} fetches wait: {len(rig.topics._watches)}",
    )


# --------------------------------------------------------------------------------------- waiting


async def test_a_fetch_waits_for_records(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")
        await rig.create_topic("b")
        waiting = asyncio.create_task(rig.ask("fetch", 11, **fetch_fields("a", "b")))
        await until_watched(rig)
        await run_client(rig, produce_to, "b")
        assert fetched(await waiting) == {"a": [], "b": [[0, 1]]}
        await until_watched(rig, 0)


async def test_a_fetch_gets_all_that_came_in_one_request(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")
        await rig.create_topic("b")
        waiting = asyncio.create_task(rig.ask("fetch", 11, **fetch_fields("a", "b")))
        await until_watched(rig)
        await run_client(rig, produce_to, "a", "b")
        assert fetched(await waiting) == {"a": [[0, 1]], "b": [[0, 1]]}


async def test_a_fetch_waits_for_as_much_as_it_asked_for(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")
        await run_client(rig, produce_to, "a")
        fields = fetch_fields("a", min_bytes=3 * len(BATCH))
        waiting = asyncio.create_task(rig.ask("fetch", 11, **fields))
        await until_watched(rig)
        await run_client(rig, produce_to, "a")
        await until_watched(rig)
        await run_client(rig, produce_to, "a")
        assert fetched(await waiting) == {"a": [[0, 1], [1, 1], [2, 1]]}


async def test_a_fetch_in_slices_is_bounded_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: the server's bound was that of each slice, and a fetch of very many had as many."""
    monkeypatch.setattr(k01_fetch, "PARTITIONS_SLICE", 1)
    async with run_topics(tmp_path, fetch_max_bytes=2 * len(BATCH)) as rig:
        for name in "abcd":
            await rig.create_topic(name)
        await run_client(rig, produce_to, "a", "b", "c", "d")
        answer = fetched(await rig.ask("fetch", 11, **fetch_fields("a", "b", "c", "d")))
        assert answer == {"a": [[0, 1]], "b": [[0, 1]], "c": [], "d": []}


async def test_a_fetch_that_waited_in_vain_answers_what_there_is(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")
        await run_client(rig, produce_to, "a")
        began = time.monotonic()
        fields = fetch_fields("a", max_wait=50, min_bytes=1_000)
        assert fetched(await rig.ask("fetch", 11, **fields)) == {"a": [[0, 1]]}
        assert time.monotonic() - began >= 0.05
        await until_watched(rig, 0)


async def test_a_fetch_ends_when_a_topic_goes(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")
        await rig.create_topic("b")
        waiting = asyncio.create_task(rig.ask("fetch", 11, **fetch_fields("a", "b")))
        await until_watched(rig)
        await rig.runtime.call(DeleteTopic(INTERNAL, TopicName("b")))
        answer = fetched(await waiting)
        assert answer == {"a": [], "b": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


async def test_a_fetch_that_waits_holds_up_no_stop(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")
        await run_client(rig, produce_to, "a")
        fields = fetch_fields("a", min_bytes=3 * len(BATCH))
        waiting = asyncio.create_task(rig.ask("fetch", 11, **fields))
        await until_watched(rig)
        async with asyncio.timeout(30):
            await rig.server.stop(600.0)  # neither this grace nor the time of the fetch
        assert fetched(await waiting) == {"a": [[0, 1]]}


async def test_a_client_that_always_asks_again_holds_up_no_stop(tmp_path: Path) -> None:
    def ask_again_and_again(client: NamedClient) -> None:
        fields = fetch_fields("a", max_wait=5)
        client.send("fetch", 11, **fields)
        while True:
            client.send("fetch", 11, **fields)
            client.receive("fetch", 11)

    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")
        asking = asyncio.create_task(run_client(rig, ask_again_and_again))
        await until_watched(rig)
        async with asyncio.timeout(30):
            await rig.server.stop(600.0)
        with pytest.raises(OSError):
            await asking


async def test_a_fetch_ends_with_its_connection(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")
        client = await run(rig.connect)
        client.send("fetch", 11, **fetch_fields("a"))
        await until_watched(rig)
        client.close()
        await until_watched(rig, 0)


async def test_many_fetches_wait_at_once(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")
        clients = [await run(rig.connect) for _ in range(20)]
        for client in clients:
            client.send("fetch", 11, **fetch_fields("a"))
        await until_watched(rig, 20)
        await run_client(rig, produce_to, "a")
        for client in clients:
            assert fetched(await run(client.receive, "fetch", 11)) == {"a": [[0, 1]]}
            client.close()


# --------------------------------------------------------------------------------------- produce


async def test_produce_without_acks_says_nothing_and_appends(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")

        def ask() -> Any:
            with rig.connect() as client:
                produce_to(client, "a", acks=0)
                return client.ask("fetch", 11, **fetch_fields("a", max_wait=0))

        assert fetched(await run(ask)) == {"a": [[0, 1]]}


async def test_produce_without_acks_closes_for_an_error(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")

        def ask() -> Any:
            with rig.connect() as client:
                produce_to(client, "nope", acks=0)
                return client.ask("fetch", 11, **fetch_fields("a", max_wait=0))

        with pytest.raises(ConnectionError):
            await run(ask)
        assert fetched(await rig.ask("fetch", 11, **fetch_fields("a", max_wait=0))) == {"a": []}


async def test_null_records_are_refused(tmp_path: Path) -> None:
    """Kafka never answers them."""
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")
        data = [{"index": 0, "records": None}]
        answer = await rig.ask(
            "produce",
            9,
            transactional_id=None,
            acks=-1,
            timeout=1_000,
            topic_data=[{"name": "a", "partition_data": data}],
        )
        (partition,) = answer["responses"][0]["partition_responses"]
        assert (partition["error_code"], partition["base_offset"]) == (87, -1)


async def test_refused_records_are_named_with_the_reason(tmp_path: Path) -> None:
    ahead = encode_batch(0, [(b"k", b"v")] * 2, int(time.time() * 1000) + 7_200_000)
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")
        answer = await run_client(rig, produce_to, "a", records=ahead)
        (partition,) = answer["responses"][0]["partition_responses"]
        assert partition["error_code"] == 32
        assert [row["batch_index"] for row in partition["record_errors"]] == [0, 1]
        assert "hour" in partition["error_message"]


# ----------------------------------------------------------------------------------------- topics


async def test_topics_are_created_grown_and_deleted(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        wanted = [topic("a", 3), topic("b", -1, -1, configs={"retention.ms": "1000"})]
        answer = await rig.ask("create_topics", 7, topics=wanted, timeout=1_000)
        by_name = {row["name"]: row for row in answer["topics"]}
        image = rig.runtime.image.by_name
        assert {name: row.partitions for name, row in image.items()} == {"a": 3, "b": 1}
        assert by_name["a"]["topic_id"] == image[TopicName("a")].topic_id
        configs = {row["name"]: row["value"] for row in by_name["b"]["configs"]}
        assert configs["retention.ms"] == "-1", "what is in force, not what was asked for"
        assert configs["cleanup.policy"] == "delete"

        grown = [{"name": "a", "count": 5, "assignments": None}]
        only = await rig.ask(
            "create_partitions", 3, topics=grown, timeout=1_000, validate_only=True
        )
        assert only["results"][0]["error_code"] == 0
        assert rig.runtime.image.by_name[TopicName("a")].partitions == 3
        await rig.ask("create_partitions", 3, topics=grown, timeout=1_000, validate_only=False)
        assert rig.runtime.image.by_name[TopicName("a")].partitions == 5

        await rig.ask("delete_topics", 5, topic_names=["a", "b"], timeout=1_000)
        assert not rig.runtime.image.by_name


async def test_a_topic_keeps_its_cleanup_policy(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        wanted = [
            topic("compacted", configs={"cleanup.policy": "compact"}),
            topic("both", configs={"cleanup.policy": "compact,delete"}),
            topic("neither", configs={"cleanup.policy": "forget"}),
        ]
        answer = await rig.ask("create_topics", 7, topics=wanted, timeout=1_000)
        by_name = {row["name"]: row for row in answer["topics"]}
        assert by_name["neither"]["error_code"] == ErrorCode.INVALID_CONFIG
        for name, policy in (("compacted", "compact"), ("both", "compact,delete")):
            (row,) = (row for row in by_name[name]["configs"] if row["name"] == "cleanup.policy")
            assert (row["value"], row["config_source"]) == (policy, 1)
        again = await rig.ask("create_topics", 7, topics=wanted[:1], timeout=1_000)
        assert again["topics"][0]["error_code"] == ErrorCode.TOPIC_ALREADY_EXISTS

        resource = {
            "resource_type": 2,
            "resource_name": "compacted",
            "configuration_keys": ["cleanup.policy"],
        }
        described = await rig.ask(
            "describe_configs",
            4,
            resources=[resource],
            include_synonyms=False,
            include_documentation=False,
        )
        (row,) = described["results"][0]["configs"]
        assert (row["value"], row["config_source"]) == ("compact", 1)


async def test_validation_alone_creates_nothing(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        answer = await rig.ask(
            "create_topics", 7, topics=[topic("a", 3)], timeout=1_000, validate_only=True
        )
        assert answer["topics"][0]["error_code"] == 0
        assert not rig.runtime.image.by_name


async def test_one_bad_topic_does_not_spoil_the_others(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        wanted = [topic("a"), topic("no good"), topic("b", 0), topic("c")]
        answer = await rig.ask("create_topics", 7, topics=wanted, timeout=1_000)
        codes = {row["name"]: row["error_code"] for row in answer["topics"]}
        assert codes == {"a": 0, "no good": 17, "b": 37, "c": 0}
        assert set(rig.runtime.image.by_name) == {"a", "c"}


def test_topic_ids_are_random_uuids() -> None:
    made = {make_topic_id() for _ in range(2_000)}
    assert len(made) == 2_000
    assert {len(topic_id) for topic_id in made} == {16}
    assert {topic_id[6] >> 4 for topic_id in made} == {4}
    assert {topic_id[8] >> 6 for topic_id in made} == {2}
    assert max(topic_id[0] for topic_id in made) < 0xF8


# ----------------------------------------------------------------------------------------- rights


class TopicRights(Rights):
    """Denies all but what is ``allowed``, and topics whose name begins with ``open``."""

    def __init__(self, *allowed: tuple[Operation, ResourceType]) -> None:
        super().__init__(is_denied=self._is_closed)
        self.allowed = set(allowed)

    def _is_closed(self, asked: Question) -> bool:
        right = (asked.operation, asked.resource_type)
        is_open = right[1] is ResourceType.TOPIC and asked.resource_name.startswith("open")
        return not is_open and right not in self.allowed


DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_without_rights_nothing_is_said_or_done(tmp_path: Path) -> None:
    """Unauthorized topics look like missing ones; authorized topics are shown."""
    async with run_topics(tmp_path, TopicRights()) as rig:
        ids = {name: await rig.create_topic(name) for name in ("open", "closed")}
        names = ("open", "closed", "nope")
        answer = await run_client(rig, produce_to, *names)
        codes = [row["partition_responses"][0]["error_code"] for row in answer["responses"]]
        assert codes == [0, DENIED, DENIED]
        answer = await rig.ask("fetch", 11, **fetch_fields(*names, max_wait=0))
        assert fetched(answer) == {"open": [[0, 1]], "closed": DENIED, "nope": DENIED}
        asked = [{"partition_index": 0, "current_leader_epoch": -1, "timestamp": -1}]
        topics = [{"name": name, "partitions": asked} for name in names]
        answer = await rig.ask("list_offsets", 7, replica_id=-1, isolation_level=0, topics=topics)
        codes = [row["partitions"][0]["error_code"] for row in answer["topics"]]
        assert codes == [0, DENIED, DENIED]
        answer = await describe(rig, *names)
        rows = {row["name"]: (row["error_code"], row["topic_id"]) for row in answer["topics"]}
        assert rows == {"open": (0, ids["open"]), "closed": (DENIED, None), "nope": (DENIED, None)}
        assert [row["name"] for row in (await describe(rig))["topics"]] == ["open"]
        for version, by_id in ((6, True), (5, False)):
            answer = await delete(rig, version, by_id, ids["closed"])
            assert [row["error_code"] for row in answer["responses"]] == [DENIED]
            assert [row["name"] for row in answer["responses"]] == [None if by_id else "closed"]
        grown = [{"name": name, "count": 2, "assignments": None} for name in ("closed", "nope")]
        answer = await rig.ask(
            "create_partitions", 3, topics=grown, timeout=1_000, validate_only=False
        )
        assert [row["error_code"] for row in answer["results"]] == [DENIED, DENIED]
        answer = await rig.ask("create_topics", 7, topics=[topic("new")], timeout=1_000)
        assert answer["topics"][0]["error_code"] == DENIED
        assert {name: row.partitions for name, row in rig.runtime.image.by_name.items()} == {
            "open": 1,
            "closed": 1,
        }
        key = PartitionKey(ids["closed"], 0)
        run_at_once(rig.topics._logs.open_in_steps(key))
        log = rig.topics._logs.get(key)
        assert log is not None
        assert log.end_offset == 0


async def test_describing_is_not_deleting(tmp_path: Path) -> None:
    rights = TopicRights((Operation.DESCRIBE, ResourceType.TOPIC))
    async with run_topics(tmp_path, rights) as rig:
        topic_id = await rig.create_topic("closed")
        answer = await delete(rig, 6, True, topic_id)
        (row,) = answer["responses"]
        assert (row["error_code"], row["name"], row["topic_id"]) == (DENIED, "closed", topic_id)
        rights.allowed.add((Operation.DELETE, ResourceType.TOPIC))
        answer = await delete(rig, 6, True, topic_id)
        assert answer["responses"][0]["error_code"] == 0
        assert not rig.runtime.image.by_name


async def test_who_may_delete_on_the_cluster_may_delete_all_topics(tmp_path: Path) -> None:
    async with run_topics(tmp_path, TopicRights((Operation.DELETE, ResourceType.CLUSTER))) as rig:
        for version, by_id in ((6, True), (5, False)):
            answer = await delete(rig, version, by_id, await rig.create_topic("closed"))
            assert [row["error_code"] for row in answer["responses"]] == [0]
        answer = await rig.ask("delete_topics", 5, topic_names=["closed"], timeout=1_000)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [row["error_code"] for row in answer["responses"]] == [unknown]


async def test_creating_needs_the_cluster_or_the_topic(tmp_path: Path) -> None:
    rights = TopicRights()
    async with run_topics(tmp_path, rights) as rig:
        wanted = [topic("open-1"), topic("closed")]
        answer = await rig.ask("create_topics", 7, topics=wanted, timeout=1_000)
        codes = {row["name"]: row["error_code"] for row in answer["topics"]}
        assert codes == {"open-1": 0, "closed": DENIED}
        rights.allowed.add((Operation.CREATE, ResourceType.CLUSTER))
        answer = await rig.ask("create_topics", 7, topics=[topic("closed")], timeout=1_000)
        (row,) = answer["topics"]
        assert (row["error_code"], row["topic_config_error_code"]) == (0, DENIED)
        assert (row["num_partitions"], row["configs"]) == (-1, None)


async def test_a_producer_id_needs_a_right_to_write(tmp_path: Path) -> None:
    async with run_topics(tmp_path, TopicRights()) as rig:
        fields: dict[str, Any] = {"transactional_id": None, "transaction_timeout": 1_000}
        answer = await rig.ask("init_producer_id", 2, **fields)
        assert answer["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        answer = await rig.ask("init_producer_id", 2, **fields | {"transactional_id": "t"})
        assert answer["error_code"] == 53
    allowed = TopicRights((Operation.WRITE, ResourceType.TOPIC))
    async with run_topics(tmp_path / "allowed", allowed) as rig:
        assert (await rig.ask("init_producer_id", 2, **fields))["error_code"] == 0


async def test_who_poses_as_a_broker_needs_a_brokers_rights(tmp_path: Path) -> None:
    rights = TopicRights((Operation.READ, ResourceType.TOPIC))
    async with run_topics(tmp_path, rights) as rig:
        await rig.create_topic("closed")
        fields = fetch_fields("closed", max_wait=0) | {"replica_id": 5}
        assert fetched(await rig.ask("fetch", 11, **fields)) == {"closed": DENIED}
        rights.allowed.add((Operation.CLUSTER_ACTION, ResourceType.CLUSTER))
        answer = fetched(await rig.ask("fetch", 11, **fields))
        assert answer == {"closed": ErrorCode.NOT_LEADER_OR_FOLLOWER}


# ------------------------------------------------------------------------------------- producers


async def test_producer_ids_differ(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        fields: dict[str, Any] = {"transactional_id": None, "transaction_timeout": 1_000}
        answers = [await rig.ask("init_producer_id", 4, **fields) for _ in range(5)]
        assert len({answer["producer_id"] for answer in answers}) == 5
        assert {answer["producer_epoch"] for answer in answers} == {0}


async def test_transactions_are_refused_for_good(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        answer = await rig.ask(
            "init_producer_id", 4, transactional_id="t", transaction_timeout=1_000
        )
        assert answer["error_code"] == ErrorCode.UNSUPPORTED_VERSION
        assert answer["producer_id"] == -1


# -------------------------------------------------------------------------------------- stopping


async def test_a_stopping_coordinator_is_said_in_every_answer(tmp_path: Path) -> None:
    async with run_topics(tmp_path) as rig:
        await rig.create_topic("a")
        await rig.runtime.stop()
        answer = await rig.ask("create_topics", 7, topics=[topic("b")], timeout=1_000)
        assert answer["topics"][0]["error_code"] == ErrorCode.COORDINATOR_NOT_AVAILABLE
        answer = await delete(rig, 5, False, b"")
        assert answer["responses"][0]["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer = await rig.ask("delete_topics", 5, topic_names=["a"], timeout=1_000)
        assert answer["responses"][0]["error_code"] == ErrorCode.COORDINATOR_NOT_AVAILABLE
        grown = [{"name": "a", "count": 2, "assignments": None}]
        answer = await rig.ask(
            "create_partitions", 3, topics=grown, timeout=1_000, validate_only=False
        )
        assert answer["results"][0]["error_code"] == ErrorCode.COORDINATOR_NOT_AVAILABLE
        answer = await rig.ask(
            "init_producer_id", 4, transactional_id=None, transaction_timeout=1_000
        )
        assert answer["error_code"] == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_versions_are_kafkas() -> None:
    assert {api.key: api.advertised for api in TOPIC_APIS} == {
        0: (0, 13),
        1: (4, 18),
        2: (1, 11),
        19: (2, 7),
        20: (1, 6),
        22: (0, 5),
        37: (0, 3),
        75: (0, 0),
    }


async def run_client(rig: TopicsRig, ask: Any, *arguments: Any, **fields: Any) -> Any:
    """Run ``ask(client, ...)`` on a connection of its own."""

    def connected() -> Any:
        with rig.connect() as client:
            return ask(client, *arguments, **fields)

    return await run(connected)


async def describe(rig: TopicsRig, *names: str) -> dict[str, Any]:
    return await rig.ask(
        "describe_topic_partitions",
        0,
        topics=[{"name": name} for name in names],
        response_partition_limit=100,
        cursor=None,
    )


async def delete(rig: TopicsRig, version: int, by_id: bool, topic_id: bytes) -> dict[str, Any]:
    """Delete the topic ``closed``."""
    if version < 6:
        return await rig.ask("delete_topics", version, topic_names=["closed"], timeout=1_000)
    row = {"name": None, "topic_id": topic_id} if by_id else {"name": "closed", "topic_id": None}
    return await rig.ask("delete_topics", version, topics=[row], timeout=1_000)
