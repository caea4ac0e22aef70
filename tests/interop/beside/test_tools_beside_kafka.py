"""Kafka's own tools and admin client say of Muster what they say of a Kafka 4.3.0."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.interop.beside.beside_kafka import Beside, Side
from tests.interop.consumers.test_java_consumer import JAVA
from tests.kafka.broker import KafkaBroker
from tests.kafka.java import start_java
from tests.server import MusterServer

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.kafka]

SETTINGS: Final = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 200,
}
KAFKAS: Final = {"offsets.topic.num.partitions": 8, "auto.create.topics.enable": False}
TOPICS: Final = {"orders": 2, "payments": 1, "spare": 2}
HOUR_MS: Final = 3_600_000
HOURS_AGO: Final = (6, 5, 4, 3, 2, 1)
NOW_MS: Final = int(time.time() * 1_000)
SCOPES: Final = (
    ("--group", "live"),
    ("--group", "empty"),
    ("--group", "none"),
    ("--all-groups",),
    ("--group", "live", "--group", "none"),
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    """Both servers, each with a live group of two members, one of them static, and an empty one."""
    muster = MusterServer(tmp_path_factory.mktemp("beside") / "data", settings=SETTINGS)
    with KafkaBroker(SETTINGS | KAFKAS) as broker, muster, start_java(JAVA, "ToolsProgram") as java:
        beside = Beside(java, Side(broker.bootstrap), Side(muster.kafka))
        with ThreadPoolExecutor(2) as executor:
            members = list(executor.map(prepare, beside.sides))
        beside.wait_until_stable("live")
        yield beside
        for consumer in (consumer for of_side in members for consumer in of_side):
            consumer.close()


def prepare(side: Side) -> list[Consumer]:
    """Topics, a record for each of the last hours in each partition, and members."""
    side.create_topics(TOPICS)
    for topic, partitions in TOPICS.items():
        side.produce(topic, partitions, [NOW_MS - hours * HOUR_MS for hours in HOURS_AGO])
    gone = side.join("gone", "orders", {"group.id": "empty"})
    gone.commit(offsets=[TopicPartition("orders", 0, 2)], asynchronous=False)
    gone.close()
    return [
        side.join("first", "orders", {"group.id": "live", "client.rack": "r1"}),
        side.join("second", "payments", {"group.id": "live", "group.instance.id": "pay-1"}),
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), "live"),
        (("--state", "--type"), "live Consumer Stable"),
        (("--state", "stable"), "live Stable"),
        (("--state", "Empty,Stable"), "empty Empty"),
        (("--type", "classic"), "GROUP TYPE"),
        (("--type", "Consumer,classic", "--state", "Empty"), "empty Consumer Empty"),
        (("--state", "odd"), "Invalid state list 'odd'"),
    ],
)
def test_groups_are_listed(both: Beside, arguments: tuple[str, ...], expected: str) -> None:
    assert expected in both.groups("--list", *arguments)


@pytest.mark.parametrize("scope", SCOPES, ids=" ".join)
def test_groups_are_described(both: Beside, scope: tuple[str, ...]) -> None:
    for what in ((), ("--offsets",), ("--members",), ("--state",)):
        printed = both.groups("--describe", *scope, *what)
        assert both.groups("--describe", *scope, *what, "--verbose"), what
        if scope == ("--group", "none"):
            assert "GroupIdNotFoundException: Group none not found." in printed


def test_a_description_says_what_there_is(both: Beside) -> None:
    members = both.groups("--describe", "--group", "live", "--members", "--verbose")
    assert "live ID-OF-second pay-1 /127.0.0.1 second 1 3 payments:0 3 payments:0" in members
    state = both.groups("--describe", "--group", "live", "--state", "--verbose")
    assert "live SERVER (1) uniform Stable 3 3 2" in state
    offsets = both.groups("--describe", "--group", "empty")
    assert "empty orders 0 2 6 4 - - -" in offsets


def when(hours_ago: float) -> str:
    """A time as `--to-datetime` takes it."""
    found = datetime.fromtimestamp((NOW_MS - hours_ago * HOUR_MS) / 1_000, UTC)
    return found.strftime("%Y-%m-%dT%H:%M:%S.") + f"{found.microsecond // 1_000:03}"


@pytest.mark.parametrize(
    ("strategy", "offset"),
    [
        (("--to-earliest",), 0),
        (("--to-latest",), 6),
        (("--to-offset", "3"), 3),
        (("--to-offset", "99"), 6),
        (("--shift-by", "2"), 3),
        (("--shift-by", "-99"), 0),
        (("--by-duration", "PT3H30M"), 3),
        (("--to-datetime", when(2.5)), 4),
        (("--to-datetime", "2100-01-01T00:00:00.000"), 6),
        (("--to-current",), 1),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else str(value),
)
def test_offsets_are_reset_by(
    both: Beside, strategy: tuple[str, ...], offset: int, tmp_path: Path
) -> None:
    def reset(*arguments: str) -> str:
        return both.groups("--reset-offsets", "--group", "reset", *arguments)

    reset("--topic", "orders", "--to-offset", "1", "--execute")
    assert f"orders,1,{offset}" in reset("--topic", "orders", *strategy, "--export", "--dry-run")
    assert f"reset orders 1 {offset}" in reset("--topic", "orders", *strategy, "--dry-run")
    plan = tmp_path / "plan.csv"
    plan.write_text(f"orders,1,{offset}\n")
    assert "orders 0" not in reset("--from-file", str(plan), "--dry-run")
    assert both.admin("offsetsOf", "reset", "orders-1")["reset"]["orders-1"].startswith(
        "OffsetAndMetadata{offset=1,"
    )
    assert f"reset orders 0 {offset}" in reset("--topic", "orders", *strategy, "--execute")
    assert f"reset orders 1 {offset} 6 {6 - offset}" in both.groups(
        "--describe", "--group", "reset"
    )


def test_offsets_are_reset_from_a_file_and_by_other_scopes(both: Beside, tmp_path: Path) -> None:
    def reset(*arguments: str) -> str:
        return both.groups("--reset-offsets", *arguments)

    plan = tmp_path / "plan.csv"
    plan.write_text("orders,1,5\npayments,0,99\n")
    assert "filed payments 0 6" in reset("--group", "filed", "--from-file", str(plan), "--execute")
    plan.write_text("filed,orders,1,4\nempty,orders,0,3\n")
    two = ("--group", "filed", "--group", "empty")
    assert "empty orders 0 3" in reset(*two, "--from-file", str(plan), "--execute")
    assert "empty,orders,0,0" in reset(
        *two, "--topic", "orders", "--to-earliest", "--export", "--dry-run"
    )
    assert "filed payments 0 0" in reset(
        "--group", "filed", "--all-topics", "--to-earliest", "--execute"
    )
    reset("--all-groups", "--all-topics", "--to-latest", "--dry-run")
    one = ("--group", "filed", "--to-offset", "2", "--execute", "--topic")
    assert "filed orders 1 2" in reset(*one, "orders:1", "--topic", "payments")
    for topic in ("nowhere", "orders:7"):
        reset(*one, topic)
    live = ("--group", "live", "--topic", "orders", "--to-offset", "2", "--execute")
    assert "is inactive, but the current state is Stable" in reset(*live)


def test_offsets_and_groups_are_deleted(both: Beside) -> None:
    for group in ("going", "other"):
        scope = ("--group", group, "--topic", "orders", "--topic", "payments")
        both.groups("--reset-offsets", *scope, "--to-offset", "2", "--execute")

    def delete_offsets(group: str, *topics: str) -> str:
        words = [word for topic in topics for word in ("--topic", topic)]
        return both.groups("--delete-offsets", "--group", group, *words)

    assert "orders 0 Successful" in delete_offsets("going", "orders:0")
    delete_offsets("going", "orders:0,1", "nowhere")
    delete_offsets("going", "orders:9")
    assert "actively subscribed to it" in delete_offsets("live", "orders")
    delete_offsets("live", "orders:0", "spare")
    assert "The group id does not exist" in delete_offsets("none", "orders")
    both.groups("--describe", "--group", "going")
    assert "was successful" in both.groups("--delete", "--group", "going")
    printed = both.groups("--delete", "--group", "other", "--group", "live", "--group", "none")
    assert "The group is not empty" in printed
    listed = both.groups("--list").splitlines()
    assert "live" in listed
    assert not {"going", "other"} & set(listed)


def test_patterns_are_validated(both: Beside) -> None:
    assert "is valid" in both.groups("--validate-regex", "orders-.*")
    assert "is invalid" in both.groups("--validate-regex", "(orders")
    assert "is invalid" in both.groups("--validate-regex", r"(a)\1")


@pytest.mark.parametrize(
    "filters",
    [
        (),
        ("types=Consumer",),
        ("types=Classic",),
        ("types=Share,Streams",),
        ("states=Stable",),
        ("states=Empty,Dead",),
        ("states=NotReady",),
        ("protocols=consumer",),
        ("protocols=-",),
        ("protocols=connect",),
        ("types=Classic", "states=Empty"),
    ],
    ids=" ".join,
)
def test_the_admin_client_lists_groups(both: Beside, filters: tuple[str, ...]) -> None:
    both.admin("alter", "simple", "orders-0=1")
    both.admin("list", *filters)


def test_the_admin_client_describes_groups(both: Beside) -> None:
    both.admin("alter", "simple", "orders-0=1")
    found = both.admin("describe", "live", "empty", "simple", "none")
    assert found["live"]["operations"]
    assert found["none"] == "GroupIdNotFoundException: Group none not found."
    both.admin("describeClassic", "live", "simple", "none")


def test_the_admin_client_alters_and_shows_offsets(both: Beside) -> None:
    most = str(2**63 - 1)
    both.admin("alter", "made", "orders-0=3:7:hello", "orders-1=0", f"payments-0={most}")
    both.admin("alter", "made", "orders-0=4", "nowhere-0=1", "orders-9=1")
    both.admin("alter", "made", f"orders-0=5:1:{'x' * 4_097}", "orders-1=5")
    assert both.admin("alter", "live", "orders-0=4")["orders-0"].startswith("UnknownMemberId")
    both.admin("alter", "empty", "orders-1=4")
    both.admin("alter", "", "orders-1=4")
    for call in ("offsets", "stableOffsets"):
        both.admin(call, "made", "live", "empty", "none")
    both.admin("offsetsOf", "made", "orders-0", "orders-1", "orders-9", "nowhere-0")
    both.admin("offsetsOf", "none", "orders-0")


def test_the_admin_client_deletes_offsets_and_groups(both: Beside) -> None:
    both.admin("alter", "left", "orders-0=3", "orders-1=3")
    both.admin("deleteOffsets", "left", "orders-0", "orders-9", "nowhere-0")
    both.admin("deleteOffsets", "live", "orders-0", "spare-0")
    both.admin("deleteOffsets", "none", "orders-0")
    assert both.admin("delete", "live", "left", "none", "")["left"] == "deleted"


def test_the_admin_client_changes_settings_of_groups(both: Beside) -> None:
    own = (
        "consumer.assignor",
        "consumer.leave.grace.ms",
        "consumer.max.size",
        "consumer.migration.policy",
        "offsets.retention.minutes",
    )
    for change in ("consumer.session.timeout.ms=50000", "share.isolation.level=read_committed"):
        both.admin("plain", "alterConfigs", "group:set", change)
    for refused in ("nonsense=1", "consumer.session.timeout.ms=1", "consumer.session.timeout.ms=x"):
        assert "Exception" in both.admin("plain", "alterConfigs", "group:set", refused)
    assert both.admin("plain", "listConfigResources") == ["set"]
    shown = both.admin("plain", "describeConfigs", "group:set", without=own)
    assert shown["group:set"]["consumer.session.timeout.ms"] == "50000"
    both.configs("--entity-type", "groups", "--entity-name", "set", "--describe")
    for gone in ("consumer.session.timeout.ms=", "share.isolation.level="):
        both.admin("plain", "alterConfigs", "group:set", gone)
    assert both.admin("plain", "listConfigResources") == []


def test_the_admin_client_shows_topics_and_the_cluster(both: Beside) -> None:
    ids = ("topic_id", "cluster_id", "port")
    both.admin("plain", "describeTopics", *TOPICS, without=ids)
    assert "Unknown" in both.admin("plain", "describeTopics", "nowhere")
    assert both.admin("plain", "describeCluster", without=ids)["controller"] == 1
    both.admin("plain", "listConsumerGroups")
    time_ms = NOW_MS - 4 * HOUR_MS - 1
    specs = (
        "orders-0=earliest",
        "orders-1=latest",
        f"payments-0={time_ms}",
        "spare-0=max-timestamp",
    )
    found = both.admin("plain", "listOffsets", *specs)
    assert found["payments-0"] == {"offset": 2, "timestamp": time_ms + 1}
    both.admin("plain", "createTopics", "new=2", without=ids)
    assert "Exists" in both.admin("plain", "createTopics", "new=2")
    both.admin("plain", "createPartitions", "new=4")
    assert "InvalidPartitions" in both.admin("plain", "createPartitions", "new=3")
    both.admin("plain", "deleteTopics", "new")
    assert set(both.admin("plain", "listTopics", without=ids)) >= set(TOPICS)


def test_the_configs_tool_changes_settings_of_groups(both: Beside) -> None:
    group = ("--entity-type", "groups", "--entity-name", "tool")
    added = "consumer.heartbeat.interval.ms=6000,consumer.session.timeout.ms=50000"
    assert "Completed updating config" in both.configs(*group, "--alter", "--add-config", added)
    shown = both.configs(*group, "--describe")
    assert "DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000" in shown
    both.configs("--entity-type", "groups", "--describe")
    for refused in ("consumer.session.timeout.ms=1", "nonsense=1"):
        assert "Error" in both.configs(*group, "--alter", "--add-config", refused)
    names = "consumer.heartbeat.interval.ms,consumer.session.timeout.ms"
    both.configs(*group, "--alter", "--delete-config", names)
    assert "50000" not in both.configs(*group, "--describe")


def test_the_topics_tool_creates_grows_shows_and_deletes(both: Beside) -> None:
    # Kafka says of every topic what it says of the cluster.
    both.kafka.names["min.insync.replicas=1"] = ""
    made = ("--topic", "made")
    assert "Created topic made." in both.topics("--create", *made, "--partitions", "2")
    assert "already exists" in both.topics("--create", *made, "--partitions", "2")
    both.topics("--create", *made, "--partitions", "2", "--if-not-exists")
    both.topics("--alter", *made, "--partitions", "5")
    both.topics("--alter", *made, "--partitions", "4")
    assert "made" in both.topics("--list", "--exclude-internal")
    assert "PartitionCount: 5" in both.topics("--describe", *made)
    both.topics("--delete", *made)
    both.topics("--delete", *made)
    assert "made" not in both.topics("--list", "--exclude-internal")


def test_nobody_fences_producers_here(both: Beside) -> None:
    """Muster coordinates no transactions, and is not asked again and again without a pause."""
    found = both.ask(both.muster, "admin", both.muster.address, "", "fence", "a-transaction")
    assert "TimeoutException" in found
    attempts = re.search(r"after (\d+) attempt", found)
    assert attempts is None or int(attempts[1]) < 100


def test_members_are_removed_by_the_admin_client(both: Beside) -> None:
    """The last one: the group is empty after it."""
    assert both.admin("remove", "live", "pay-1", "odd")["pay-1"] == "removed"
    both.wait_until_stable("live")
    assert len(both.admin("describe", "live")["live"]["members"]) == 1
    both.admin("remove", "none", "pay-1")
    assert both.admin("removeAll", "live") == {"live": "removed"}
    assert not both.admin("describe", "live")["live"]["members"]
    for group in ("live", "none"):
        both.admin("removeAll", group)
    assert "live" in both.groups("--delete", "--all-groups")
    assert both.groups("--list") == ""
