"""Kafka's tools and admin clients, pointed at the cluster and at Muster."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Final
from urllib.request import urlopen

import pytest
from confluent_kafka.admin import AdminClient

from tests.kafka.processes import HOST, ServerProcess, find_ports
from tests.kafka.releases import KAFKA_2_8_2, KAFKA_3_9_1, KAFKA_4_3_CLASSIC
from tests.support.waiting import wait_until
from tests.upstream.cases import ALL
from tests.upstream.clients import CONFLUENT, JAVA_3_9
from tests.upstream.moves import settle
from tests.upstream.scene import GROUP, TOPIC, WITHIN_S, Scene

OTHER = "other"
EXPORTER: Final = os.environ.get("KAFKA_EXPORTER", "")
"""A program of github.com/danielqsj/kafka_exporter, which is built elsewhere."""
RELEASES = [KAFKA_4_3_CLASSIC, KAFKA_3_9_1, KAFKA_2_8_2] if ALL else [KAFKA_3_9_1]
_ROW = re.compile(rf"^{GROUP}\s+{TOPIC}\s+(\d+)\s+(\S+)\s+(\d+)\s+(\d+)\s+(\S+)", re.MULTILINE)

_LABEL = re.compile(r'(\w+)="([^"]*)"')

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", params=RELEASES, ids=str)
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """One group that is taken, of two members, and another that is not; nothing is produced."""
    settings = {"metrics.lag.interval.ms": 1_000, "metrics.granularity": "partition"}
    folder = tmp_path_factory.mktemp("tools")
    with Scene(folder, request.param, muster_settings=settings) as running:
        running.join(JAVA_3_9, "one")
        running.join(CONFLUENT, "two")
        other = running.join(CONFLUENT, "three", group=OTHER)
        running.members.remove(other)
        settle(running)
        running.take()
        settle(running)
        running.traffic.stop()
        running.wait_for(
            lambda: running.fetch_committed() == running.traffic.produced, "all is committed"
        )
        yield running
        other.kill()


def describe(scene: Scene, bootstrap: str) -> dict[int, tuple[str, int, int, str]]:
    """By partition: committed, end, lag and consumer."""
    release = scene.cluster.release
    words = ("--bootstrap-server", bootstrap, "--describe", "--group", GROUP)
    done = scene.cluster.run_tool(release.consumer_groups, *words)
    rows = {
        int(row[1]): (row[2], int(row[3]), int(row[4]), row[5])
        for row in _ROW.finditer(done.stdout)
    }
    assert len(rows) == scene.partitions, done
    return rows


def test_the_cluster_shows_offsets_lag_and_the_sentinel(scene: Scene) -> None:
    for number, (committed, end, lag, consumer) in describe(scene, scene.cluster.bootstrap).items():
        produced = scene.traffic.produced[f"{TOPIC}-{number}"]
        assert (committed, end, lag) == (str(produced), produced, 0)
        assert consumer.startswith("muster"), consumer


def test_muster_shows_offsets_lag_and_the_members(scene: Scene) -> None:
    rows = describe(scene, scene.bootstrap)
    for number, (committed, end, lag, _) in rows.items():
        produced = scene.traffic.produced[f"{TOPIC}-{number}"]
        assert (committed, end, lag) == (str(produced), produced, 0)
    assert len({consumer for *_, consumer in rows.values()}) == len(scene.members)


def test_muster_s_own_command_shows_the_same(scene: Scene) -> None:
    done = scene.run_muster("group", "offsets", GROUP, "-o", "json")
    assert done.returncode == 0, done
    shown = {
        row["partition"]: (row["offset"], row["end_offset"], row["lag"])
        for row in json.loads(done.stdout)["offsets"]
    }
    assert shown == {
        number: (scene.traffic.produced[f"{TOPIC}-{number}"],) * 2 + (0,)
        for number in range(scene.partitions)
    }


def test_muster_s_metrics_have_the_lag_of_groups_that_are_here(scene: Scene) -> None:
    assert scene.server is not None
    address = scene.server.http

    def read(name: str) -> dict[str, float]:
        with urlopen(f"http://{address}/metrics", timeout=WITHIN_S) as answer:
            page = answer.read().decode()
        rows = re.findall(rf"^{name}{{(.*)}} (\S+)$", page, re.MULTILINE)
        found = ((dict(_LABEL.findall(text)), float(value)) for text, value in rows)
        return {
            f"{labels['topic']}-{labels['partition']}": value
            for labels, value in found
            if labels["group"] == GROUP
        }

    wait_until(
        lambda: read("muster_group_partition_offset") == scene.traffic.produced, within_s=WITHIN_S
    )
    assert read("muster_group_partition_lag") == dict.fromkeys(scene.names, 0)


def test_each_group_is_listed_once(scene: Scene) -> None:
    """An admin client asks all brokers that Metadata names."""
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    listed = admin.list_consumer_groups().result(WITHIN_S)
    assert not listed.errors
    assert sorted(each.group_id for each in listed.valid) == [GROUP, OTHER]
    release = scene.cluster.release
    words = ("--bootstrap-server", scene.bootstrap, "--list")
    done = scene.cluster.run_tool(release.consumer_groups, *words)
    assert sorted(done.stdout.split()) == [GROUP, OTHER], done


def test_a_group_that_is_not_taken_is_described_through_muster(scene: Scene) -> None:
    admin = AdminClient({"bootstrap.servers": scene.bootstrap})
    found = admin.describe_consumer_groups([GROUP, OTHER])
    assert [member.client_id for member in found[OTHER].result(WITHIN_S).members] == ["three"]
    ours = {member.client_id for member in found[GROUP].result(WITHIN_S).members}
    assert ours == {"one", "two"}


def test_offsets_of_a_working_group_are_not_reset(scene: Scene) -> None:
    """Neither here nor there: it has members, and there the sentinel."""
    release = scene.cluster.release
    before = scene.fetch_committed()
    for bootstrap in (scene.bootstrap, scene.cluster.bootstrap):
        words = ("--bootstrap-server", bootstrap, "--group", GROUP, "--topic", TOPIC)
        done = scene.cluster.run_tool(
            release.consumer_groups, *words, "--reset-offsets", "--to-earliest", "--execute"
        )
        assert "can only be reset if the group" in done.stdout + done.stderr, done
    assert scene.fetch_committed() == before


def test_topics_are_the_clusters(scene: Scene) -> None:
    release = scene.cluster.release
    where = ("--bootstrap-server", scene.bootstrap)
    made = scene.cluster.run_tool(
        release.topics, *where, "--create", "--topic", "payments", "--partitions", "3"
    )
    assert made.returncode == 0, made
    there = scene.cluster.run_tool(
        release.topics, "--bootstrap-server", scene.cluster.bootstrap, "--list"
    )
    assert {TOPIC, "payments"} <= set(there.stdout.split()), there


@pytest.mark.skipif(not EXPORTER, reason="KAFKA_EXPORTER is to be a program of kafka_exporter")
@pytest.mark.parametrize("where", ["cluster", "muster"])
def test_kafka_exporter_shows_offsets_and_lag_of_each_group_once(scene: Scene, where: str) -> None:
    bootstrap = scene.cluster.bootstrap if where == "cluster" else scene.bootstrap
    (port,) = find_ports(1)
    words = [f"--kafka.server={each}" for each in bootstrap.split(",")]
    command = [EXPORTER, *words, f"--web.listen-address={HOST}:{port}"]
    exporter = ServerProcess(f"exporter-of-{where}", command, scene.folder)
    exporter.start()
    try:
        page = ask_exporter(exporter, port)
    finally:
        exporter.kill()
    for name, wanted in (("current_offset", scene.traffic.produced), ("lag", None)):
        rows = re.findall(rf"^kafka_consumergroup_{name}{{(.*)}} (\S+)$", page, re.MULTILINE)
        found = {
            (labels["consumergroup"], f"{labels['topic']}-{labels['partition']}"): float(value)
            for labels, value in ((dict(_LABEL.findall(text)), value) for text, value in rows)
        }
        assert len(found) == len(rows) == 2 * scene.partitions, page
        ours = {partition: count for (group, partition), count in found.items() if group == GROUP}
        assert ours == (wanted or dict.fromkeys(scene.names, 0)), page


def ask_exporter(exporter: ServerProcess, port: int) -> str:
    """What it shows, once it has connected."""
    page = ""

    def ask() -> bool:
        nonlocal page
        try:
            with urlopen(f"http://{HOST}:{port}/metrics", timeout=WITHIN_S) as answer:
                page = answer.read().decode()
        except OSError:
            return False
        return True

    exporter.wait_until_ready(ask, WITHIN_S)
    return page
