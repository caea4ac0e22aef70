"""Kafka's own ``ConsumerGroupCommand`` prints our groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.test_java_consumer import JAVA, PARTITIONS, RECORDS, consumer, produce
from tests.kafka.java import run_java
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
