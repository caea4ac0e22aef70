"""Kafka's own ``ConsumerGroupCommand`` prints our groups."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.test_java_consumer import JAVA, PARTITIONS, RECORDS, consumer, produce
from tests.kafka.java import Event, JavaProgram, run_java, start_java
from tests.kafka.tools import run_consumer_groups, run_topics
from tests.server import MusterServer

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MusterServer]:
    """A server with a group of one Java consumer that has read and committed everything."""
    folder: Path = tmp_path_factory.mktemp("tools")
    with MusterServer(folder / "data", topics={"orders": PARTITIONS}) as running:
        produce(running, RECORDS, 0)
        with consumer(running, "one") as program:
            program.wait_for("records", lambda event: event["total"] == RECORDS)
            program.wait_for("committed")
            yield running


def rows(server: MusterServer, *arguments: str) -> list[dict[str, str]]:
    """The table that the tool prints, a dict a line."""
    done = run_consumer_groups(server.kafka, *arguments)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.strip()]
    heads = [index for index, line in enumerate(lines) if line[0] == "GROUP"]
    assert heads, done.stdout + done.stderr
    head = lines[heads[0]]
    return [dict(zip(head, line, strict=False)) for line in lines[heads[0] + 1 :]]


def test_list_with_states_and_types(server: MusterServer) -> None:
    (row,) = rows(server, "--list", "--state", "--type")
    assert row == {"GROUP": "java", "TYPE": "Consumer", "STATE": "Stable"}


def test_describe_members_verbose(server: MusterServer) -> None:
    (row,) = rows(server, "--describe", "--group", "java", "--members", "--verbose")
    assert row["CLIENT-ID"] == "one"
    assert row["HOST"] == "/127.0.0.1"
    assert row["#PARTITIONS"] == str(PARTITIONS)
    assert row["CURRENT-EPOCH"] == row["TARGET-EPOCH"] == "2"
    assert row["CURRENT-ASSIGNMENT"] == row["TARGET-ASSIGNMENT"] == "orders:0,1,2,3"


def test_describe_state_verbose(server: MusterServer) -> None:
    (row,) = rows(server, "--describe", "--group", "java", "--state", "--verbose")
    assert row["STATE"] == "Stable"
    assert row["ASSIGNMENT-STRATEGY"] == "uniform"
    assert row["GROUP-EPOCH"] == row["TARGET-ASSIGNMENT-EPOCH"] == "2"
    assert row["#MEMBERS"] == "1"


def test_describe_offsets_verbose(server: MusterServer) -> None:
    found = rows(server, "--describe", "--group", "java", "--offsets", "--verbose")
    assert sorted(int(row["PARTITION"]) for row in found) == list(range(PARTITIONS))
    for row in found:
        end = str(RECORDS // PARTITIONS)
        assert (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) == (end, end, "0")


def test_topics_tool_creates_grows_lists_and_deletes(server: MusterServer) -> None:
    bootstrap = server.kafka
    for arguments in (
        ("--create", "--topic", "made", "--partitions", "2"),
        ("--alter", "--topic", "made", "--partitions", "5"),
    ):
        done = run_topics(bootstrap, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    described = run_topics(bootstrap, "--describe", "--topic", "made").stdout
    assert "PartitionCount: 5" in described
    assert run_topics(bootstrap, "--delete", "--topic", "made").returncode == 0
    assert "made" not in run_topics(bootstrap, "--list").stdout.split()


def test_admin_client_describes_the_group(server: MusterServer) -> None:
    done = run_java(
        JAVA,
        "AdminProgram",
        *("--bootstrap", server.kafka, "describeConsumerGroups", "java"),
    )
    assert done.returncode == 0, done.stdout
    assert '"java"' in done.stdout
    assert "STABLE" in done.stdout.upper()


# ---------------------------------------------------------------------- what changes groups


class Tools:
    """Kafka's tools, run in one JVM."""

    def __init__(self, program: JavaProgram, bootstrap: str) -> None:
        self._program = program
        self._bootstrap = bootstrap

    def run(self, tool: str, *arguments: str, code: int = 0) -> str:
        """What the tool printed; its exit code must be ``code``."""
        words = [tool, "--bootstrap-server", self._bootstrap, *arguments]
        self._program.send(json.dumps(words))
        done = self._program.wait_for("done")
        assert done["exit"] == code, done["printed"]
        printed: str = done["printed"]
        return printed

    def configs(self, *arguments: str, code: int = 0) -> str:
        return self.run("configs", *arguments, code=code)

    def reset(self, *arguments: str) -> dict[int, int]:
        """What ``--reset-offsets`` says of each partition of orders."""
        words = ("--reset-offsets", "--group", "batch", "--topic", "orders", *arguments)
        return parse_resets(self.run("groups", *words))


def parse_resets(printed: str) -> dict[int, int]:
    lines = [line.split() for line in printed.splitlines()]
    return {int(line[2]): int(line[3]) for line in lines if line[:2] == ["batch", "orders"]}


@pytest.fixture(scope="module")
def tools(server: MusterServer) -> Iterator[Tools]:
    with start_java(JAVA, "ToolsProgram") as program:
        yield Tools(program, server.kafka)


def test_configs_tool_sets_shows_and_deletes_settings_of_a_group(tools: Tools) -> None:
    group = ("--entity-type", "groups", "--entity-name", "java")
    added = "consumer.heartbeat.interval.ms=6000,consumer.session.timeout.ms=50000"
    assert "Completed updating config" in tools.configs(*group, "--alter", "--add-config", added)
    shown = tools.configs(*group, "--describe")
    session = (
        "consumer.session.timeout.ms=50000 sensitive=false "
        "synonyms={DYNAMIC_GROUP_CONFIG:consumer.session.timeout.ms=50000, "
        "DEFAULT_CONFIG:group.consumer.session.timeout.ms=45000}"
    )
    assert session in shown
    assert "consumer.heartbeat.interval.ms=6000" in shown
    assert "consumer.assignment.interval.ms" not in shown, "not its own"
    assert "consumer.assignment.interval.ms=0" in tools.configs(*group, "--describe", "--all")
    assert session in tools.configs("--entity-type", "groups", "--describe")
    refused = tools.configs(
        *group, "--alter", "--add-config", "consumer.session.timeout.ms=1", code=1
    )
    assert "must be greater than or equal to group.consumer.min.session.timeout.ms" in refused
    names = "consumer.heartbeat.interval.ms,consumer.session.timeout.ms"
    tools.configs(*group, "--alter", "--delete-config", names)
    assert "consumer.session.timeout.ms" not in tools.configs(*group, "--describe")


def test_every_way_to_reset_offsets(tools: Tools, tmp_path: Path) -> None:
    end = RECORDS // PARTITIONS

    def everywhere(offset: int) -> dict[int, int]:
        return dict.fromkeys(range(PARTITIONS), offset)

    assert tools.reset("--to-latest", "--dry-run") == everywhere(end)
    assert tools.reset("--to-current", "--dry-run") == everywhere(end), "of none the latest"
    for arguments, offset in (
        (("--to-earliest",), 0),
        (("--to-offset", "3"), 3),
        (("--shift-by", "4"), 7),
        (("--shift-by", "-2"), 5),
        (("--to-current",), 5),
        (("--by-duration", "PT1H"), 0),
        (("--to-datetime", "2020-01-01T00:00:00.000"), 0),
        (("--to-latest",), end),
    ):
        assert tools.reset(*arguments, "--execute") == everywhere(offset), arguments
    plan = tmp_path / "plan.csv"
    plan.write_text("orders,1,6\norders,2,7\n")
    words = ("--reset-offsets", "--group", "batch", "--from-file", str(plan), "--execute")
    assert parse_resets(tools.run("groups", *words)) == {1: 6, 2: 7}
    described = tools.run("groups", "--describe", "--group", "batch")
    found = {
        int(line.split()[2]): int(line.split()[3])
        for line in described.splitlines()
        if line.startswith("batch ")
    }
    assert found == everywhere(end) | {1: 6, 2: 7}
    live = ("--reset-offsets", "--group", "java", "--topic", "orders", "--to-earliest", "--execute")
    assert "is inactive, but the current state is Stable" in tools.run("groups", *live)


def test_offsets_and_groups_are_deleted(tools: Tools) -> None:
    def delete_offsets(group: str, topic: str) -> str:
        return tools.run("groups", "--delete-offsets", "--group", group, "--topic", topic)

    tools.reset("--to-offset", "2", "--execute")
    assert "Request succeeded for deleting offsets" in delete_offsets("batch", "orders:0")
    described = tools.run("groups", "--describe", "--group", "batch")
    assert sorted(
        line.split()[2] for line in described.splitlines() if line.startswith("batch ")
    ) == ["1", "2", "3"]
    assert "actively subscribed to it" in delete_offsets("java", "orders:0")
    assert "is not empty" in tools.run("groups", "--delete", "--group", "java")
    deleted = tools.run("groups", "--delete", "--group", "batch")
    assert "Deletion of requested consumer groups ('batch') was successful." in deleted
    assert "does not exist" in tools.run("groups", "--delete", "--group", "batch")
    assert "batch" not in tools.run("groups", "--list").split()


def test_admin_client_alters_and_deletes(server: MusterServer) -> None:
    with start_java(JAVA, "AdminProgram", "--bootstrap", server.kafka) as program:

        def call(*words: str) -> Event:
            program.send(" ".join(words))
            return program.wait_for(words[0])

        assert call("alterConfigs", "group:made", "consumer.max.size=7")["result"]
        assert call("listConfigResources")["result"] == ["made"]
        shown = call("describeConfigs", "group:made")["result"]["group:made"]
        assert shown["consumer.max.size"] == "7"
        assert call("alterConfigs", "group:made", "consumer.max.size=")["result"]
        assert call("listConfigResources")["result"] == []
        refused = call("alterConfigs", "group:made", "nonsense=1")
        assert refused["error"] == "InvalidConfigurationException"
        assert refused["message"] == "Unknown group config name: nonsense"
        assert call("alterConsumerGroupOffsets", "made", "orders-0=3", "orders-1=4")["result"]
        assert call("deleteConsumerGroupOffsets", "made", "orders-0")["result"]
        left = call("listConsumerGroupOffsets", "made")["result"]
        assert left == {"made": {"orders-1": 4}}
        refused = call("deleteConsumerGroupOffsets", "java", "orders-0")
        assert refused["error"] == "GroupSubscribedToTopicException"
        assert call("deleteConsumerGroups", "made")["result"] == ["made"]
        assert call("deleteConsumerGroups", "made")["error"] == "GroupIdNotFoundException"
        assert call("deleteConsumerGroups", "java")["error"] == "GroupNotEmptyException"
