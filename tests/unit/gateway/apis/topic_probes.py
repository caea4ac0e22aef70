"""Requests to the topic APIs, good and bad, whose answers a real Kafka and Muster must share.

``run_probes`` asks a server all of them, in order, on topics that it makes itself, and returns
plain answers: topic ids become names, producer ids whether they are there, records the batches
that they hold.
"""

from __future__ import annotations

from typing import Any

from tests.support.waiting import wait_until_answered
from tests.unit.gateway.apis.prober import ANSWER_IN_TIME_S, UNKNOWN_ID, Probe, Prober, topic
from tests.unit.gateway.apis.record_probes import (
    fetch_probes,
    list_offsets_probes,
    produce_probes,
)


def create(*topics: dict[str, Any], version: int = 7, validate_only: bool = False) -> Probe:
    """CreateTopics; the answers are by name, for Kafka gives them in no order."""

    def probe(prober: Prober) -> Any:
        answer = prober.ask(
            "create_topics", version, topics=topics, timeout=5_000, validate_only=validate_only
        )
        return sorted(answer["topics"], key=lambda row: row["name"])

    return probe


def _created() -> dict[str, Probe]:
    on_1, both = [1], [1, 2]
    return {
        "create with defaults": create(topic("d", -1, -1)),
        "create again": create(topic("d")),
        "create again with nonsense": create(topic("d", -7, 9)),
        "create factor 2": create(topic("e", 1, 2)),
        "create factor 0": create(topic("e", 1, 0)),
        "create factor -2": create(topic("e", 1, -2)),
        "create 0 partitions": create(topic("e", 0)),
        "create -2 partitions": create(topic("e", -2)),
        "create without a name": create(topic("")),
        "create a bad name and factor": create(topic("a b", 1, 2)),
        "create .": create(topic(".")),
        "create ..": create(topic("..")),
        "create 249 characters": create(topic("x" * 249)),
        "create 250 characters": create(topic("x" * 250)),
        "create a space": create(topic("a b")),
        "create an umlaut": create(topic("\u00e4")),
        "create a.b": create(topic("a.b")),
        "create a_b": create(topic("a_b")),
        "create Kafka's metadata": create(topic("__cluster_metadata")),
        "create one twice": create(topic("f"), topic("f"), topic("g")),
        "create assigned": create(topic("m", -1, -1, {0: on_1, 1: on_1})),
        "create assigned, with a number": create(topic("m2", 2, -1, {0: on_1, 1: on_1})),
        "create assigned, with a factor": create(topic("m2", -1, 1, {0: on_1})),
        "create assigned, with a gap": create(topic("m2", -1, -1, {0: on_1, 2: on_1})),
        "create assigned elsewhere": create(topic("m2", -1, -1, {0: [2]})),
        "create assigned to none": create(topic("m2", -1, -1, {0: []})),
        "create assigned doubly": create(topic("m2", -1, -1, {0: [1, 1]})),
        "create assigned to two": create(topic("m2", -1, -1, {0: both})),
        "create a partition twice": create(topic("m2", -1, -1, {0: on_1}, more=((0, on_1),))),
        "create with configs": create(topic("c1", configs={"cleanup.policy": "compact"})),
        "create with an unknown config": create(topic("c2", configs={"nope": "x"})),
        "create with a null config": create(topic("c2", configs={"retention.ms": None})),
        "validate": create(topic("v1", 3), validate_only=True),
        "validate again": create(topic("d", 3), validate_only=True),
        "validate 10001": create(topic("v1", 10_001), validate_only=True),
        "validate 12000 in two": create(topic("v1", 6_000), topic("v2", 6_000), validate_only=True),
        "create 2^31-1": create(topic("v1", 2**31 - 1)),
        "create nothing": create(),
        **{f"create v{v}": create(topic(f"w{v}"), version=v) for v in range(2, 8)},
    }


def grow(*topics: tuple[str, int, list[list[int]] | None], version: int = 3) -> Probe:
    """CreatePartitions."""
    wanted = [
        {
            "name": name,
            "count": count,
            "assignments": None
            if assignments is None
            else [{"broker_ids": nodes} for nodes in assignments],
        }
        for name, count, assignments in topics
    ]

    def probe(prober: Prober) -> Any:
        answer = prober.ask(
            "create_partitions", version, topics=wanted, timeout=5_000, validate_only=False
        )
        return sorted(answer["results"], key=lambda row: row["name"])

    return probe


def _grown() -> dict[str, Probe]:
    return {
        "grow": grow(("d", 3, None)),
        "grow to the same": grow(("d", 3, None)),
        "grow to less": grow(("d", 2, None)),
        "grow to 0": grow(("d", 0, None)),
        "grow to -1": grow(("d", -1, None)),
        "grow an unknown": grow(("nope", 3, None)),
        "grow no name": grow(("", 3, None)),
        "grow twice": grow(("d", 4, None), ("d", 5, None), ("w2", 2, None)),
        "grow assigned": grow(("d", 4, [[1]])),
        "grow assigned, too few": grow(("d", 6, [[1]])),
        "grow assigned, none": grow(("d", 6, [])),
        "grow assigned elsewhere": grow(("d", 5, [[7]])),
        "grow assigned to two": grow(("d", 5, [[1, 2]])),
        "grow nothing": grow(),
        **{f"grow v{v}": grow(("d", 5 + v, None), version=v) for v in range(4)},
    }


def describe(*names: str, limit: int = 2_000, cursor: tuple[str, int] | None = None) -> Probe:
    """DescribeTopicPartitions of topics that are there since a while."""
    at = None if cursor is None else {"topic_name": cursor[0], "partition_index": cursor[1]}

    def probe(prober: Prober) -> Any:
        answer = prober.ask(
            "describe_topic_partitions",
            0,
            topics=[{"name": name} for name in names],
            response_partition_limit=limit,
            cursor=at,
        )
        for row in answer["topics"]:
            row["partitions"] = [list(partition.values()) for partition in row["partitions"]]
        return answer

    return probe


def _described() -> dict[str, Probe]:
    one, two = "fetched", "produced"
    return {
        "describe": describe(one, two),
        "describe in order": describe(two, one),
        "describe the same twice": describe(one, one),
        "describe 2": describe(one, two, limit=2),
        "describe 3": describe(one, two, limit=3),
        "describe 4": describe(one, two, limit=4),
        "describe 0": describe(one, limit=0),
        "describe -5": describe(one, limit=-5),
        "describe from the cursor": describe(one, two, limit=2, cursor=(one, 1)),
        "describe from the second": describe(one, two, cursor=(two, 0)),
        "describe from the end": describe(one, two, limit=1, cursor=(one, 2)),
        "describe from beyond": describe(one, two, limit=2, cursor=(one, 99)),
        "describe from another topic": describe(one, two, cursor=("zzz", 0)),
        "describe from -1": describe(one, cursor=(one, -1)),
        "describe unknown ones": describe("zzz", "nope", one, limit=2),
        "describe from an unknown one": describe("nope", "zzz", cursor=("nope", 0)),
        "describe all from the second": describe(cursor=(two, 1)),
    }


def init(version: int, transactional_id: str | None = None, **fields: int) -> Probe:
    """InitProducerId, asked again while Kafka's own store of producer ids loads."""

    def probe(prober: Prober) -> Any:
        return wait_until_answered(
            lambda: prober.ask(
                "init_producer_id",
                version,
                transactional_id=transactional_id,
                transaction_timeout=1_000,
                **fields,
            ),
            lambda answer: answer == "closed" or answer["error_code"] != 14,
            "producer ids are loaded",
            ANSWER_IN_TIME_S,
        )

    return probe


def _initialised() -> dict[str, Probe]:
    return {
        **{f"producer id v{version}": init(version) for version in range(7)},
        "producer id again": init(4, producer_id=5, producer_epoch=3),
        "producer id without epoch": init(4, producer_id=5, producer_epoch=-1),
        "producer epoch without id": init(4, producer_id=-1, producer_epoch=3),
        "empty transactional id": init(4, ""),
    }


def delete(*names: str, version: int = 5) -> Probe:
    """DeleteTopics by name."""

    def probe(prober: Prober) -> Any:
        answer = prober.ask("delete_topics", version, topic_names=names, timeout=5_000)
        return sorted(answer["responses"], key=lambda row: row["name"])

    return probe


def delete_v6(*topics: tuple[str | None, str | None]) -> Probe:
    """DeleteTopics by name or by the id of the topic with the name."""

    def probe(prober: Prober) -> Any:
        wanted = [
            {"name": name, "topic_id": None if of is None else prober.ids.get(of, UNKNOWN_ID)}
            for name, of in topics
        ]
        return prober.ask("delete_topics", 6, topics=wanted, timeout=5_000)["responses"]

    return probe


def _deleted() -> dict[str, Probe]:
    return {
        "delete an unknown": delete("nope"),
        "delete a bad name": delete("a b"),
        "delete no name": delete(""),
        "delete twice": delete("gone1", "gone1", "gone2"),
        "delete nothing": delete(),
        **{f"delete v{v}": delete(f"w{v + 1}", version=v) for v in range(1, 6)},
        "delete an unknown id": delete_v6((None, "nope")),
        "delete neither": delete_v6((None, None)),
        "delete both": delete_v6(("gone3", "gone3")),
        "delete an id twice": delete_v6((None, "gone3"), (None, "gone3")),
        "delete name and id": delete_v6((None, "gone3"), ("gone3", None)),
        "delete by id": delete_v6((None, "gone3")),
        "delete by id again": delete_v6((None, "gone3")),
        "delete by name": delete_v6(("gone4", None)),
        "delete an unknown name": delete_v6(("nope", None)),
    }


def run_probes(host: str, port: int) -> dict[str, Any]:
    """All answers, by the name of the probe."""
    prober = Prober(host, port)
    try:
        for name in ("produced", "fetched"):
            prober.create(name, 2)
        for number in range(1, 5):
            prober.create(f"gone{number}", 1)
        probes = produce_probes() | list_offsets_probes() | fetch_probes()
        probes |= _described() | _initialised()
        probes |= _created() | _grown() | _deleted()
        return {name: probe(prober) for name, probe in probes.items()}
    finally:
        prober.close()
