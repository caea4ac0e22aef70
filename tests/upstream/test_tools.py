"""Kafka's tools and admin clients, pointed at the cluster and at Muster."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from tests.kafka.releases import KAFKA_2_8_2, KAFKA_3_9_1, KAFKA_4_3_CLASSIC
from tests.upstream.cases import ALL
from tests.upstream.clients import CONFLUENT, JAVA_3_9
from tests.upstream.moves import settle
from tests.upstream.scene import GROUP, TOPIC, WITHIN_S, Scene

OTHER = "other"
RELEASES = [KAFKA_4_3_CLASSIC, KAFKA_3_9_1, KAFKA_2_8_2] if ALL else [KAFKA_3_9_1]
_ROW = re.compile(rf"^{GROUP}\s+{TOPIC}\s+(\d+)\s+(\S+)\s+(\d+)\s+(\d+)\s+(\S+)", re.MULTILINE)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", params=RELEASES, ids=str)
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Scene]:
    """One group that is taken, of two members, and another that is not; nothing is produced."""
    with Scene(tmp_path_factory.mktemp("tools"), request.param) as running:
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
