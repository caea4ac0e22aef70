"""kafka_exporter, kminion, kcl, kafkactl and an admin client show the lag that there is.

Where the programs are, which are built elsewhere, is in the environment: `make tools`.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.kafka.processes import HOST, ServerProcess, find_ports
from tests.server import MusterServer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(300)

TOPIC: Final = "orders"
ENDS: Final = {0: 40, 1: 7, 2: 12}
COMMITTED: Final = {
    "idle": {0: 10, 1: 7},
    "working": {0: 40, 1: 0, 2: 5},
}
"""By group; partition 2 of the first has no offset."""
LAG: Final = {
    group: {partition: ENDS[partition] - offset for partition, offset in offsets.items()}
    for group, offsets in COMMITTED.items()
}
WITHIN_S: Final = 60.0
_LABEL: Final = re.compile(r'(\w+)="([^"]*)"')


def tool(name: str) -> str:
    """The program; the test is skipped if nobody says where it is."""
    program = os.environ.get(name, "")
    if not program:
        pytest.skip(f"{name} is to be a program that was built elsewhere: make tools")
    return program


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MusterServer]:
    """One group has offsets alone, the other a member that has joined by the consumer protocol."""
    settings = {
        "metrics.lag.interval.ms": 1_000,
        "metrics.granularity": "partition",
        "metrics.compatible": "kafka_exporter",
    }
    folder = tmp_path_factory.mktemp("tools")
    with MusterServer(folder / "data", topics={TOPIC: len(ENDS)}, settings=settings) as server:
        producer = Producer({"bootstrap.servers": server.kafka})
        for partition, end in ENDS.items():
            for _ in range(end):
                producer.produce(TOPIC, b"x", partition=partition)
        producer.flush(30)
        admin = AdminClient({"bootstrap.servers": server.kafka})
        for group, offsets in COMMITTED.items():
            rows = [TopicPartition(TOPIC, number, offset) for number, offset in offsets.items()]
            asked = [ConsumerGroupTopicPartitions(group, rows)]
            for future in admin.alter_consumer_group_offsets(asked).values():
                future.result(30)
        member = Consumer(
            {
                "bootstrap.servers": server.kafka,
                "group.id": "working",
                "client.id": "the-member",
                "group.protocol": "classic",
                "enable.auto.commit": False,
            }
        )
        member.subscribe([TOPIC])
        wait_until(lambda: member.poll(0.1) is None and len(member.assignment()) == 3, WITHIN_S)
        member.pause(member.assignment())
        try:
            yield server
        finally:
            member.close()


def read_gauges(page: str, name: str, group_label: str) -> dict[str, dict[int, float]]:
    """By group and partition; what a tool says of itself and of other topics is left out."""
    found: dict[str, dict[int, float]] = {}
    for text, value in re.findall(rf"^{name}{{(.*)}} (\S+)$", page, re.MULTILINE):
        labels = dict(_LABEL.findall(text))
        if labels.get("topic", labels.get("topic_name")) == TOPIC:
            partition = int(labels.get("partition", labels.get("partition_id", -1)))
            found.setdefault(labels[group_label], {})[partition] = float(value)
    return found


def read_page(address: str) -> str:
    """`/metrics` of whatever listens there, "" if nothing does."""
    try:
        with urlopen(f"http://{address}/metrics", timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def test_an_admin_client_shows_offsets_and_ends(server: MusterServer) -> None:
    admin = AdminClient({"bootstrap.servers": server.kafka})
    places = [TopicPartition(TOPIC, number) for number in ENDS]
    asked = admin.list_offsets({place: OffsetSpec.latest() for place in places})
    assert {place.partition: found.result(30).offset for place, found in asked.items()} == ENDS
    for group, offsets in COMMITTED.items():
        (listed,) = admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group)]
        ).values()
        rows = {row.partition: row.offset for row in listed.result(30).topic_partitions}
        assert {number: offset for number, offset in rows.items() if offset >= 0} == offsets
    (described,) = admin.describe_consumer_groups(["working"]).values()
    assert [member.client_id for member in described.result(30).members] == ["the-member"]


def test_our_own_names_show_it(server: MusterServer) -> None:
    wait_until(lambda: "kafka_consumergroup_lag{" in read_page(server.http), WITHIN_S)
    page = read_page(server.http)
    assert read_gauges(page, "muster_group_partition_lag", "group") == LAG
    assert read_gauges(page, "kafka_consumergroup_lag", "consumergroup") == LAG
    assert read_gauges(page, "kafka_consumergroup_current_offset", "consumergroup") == COMMITTED


def test_kafka_exporter_shows_it_and_we_show_what_it_does(
    server: MusterServer, tmp_path: Path
) -> None:
    (port,) = find_ports(1)
    address = f"{HOST}:{port}"
    words = [f"--kafka.server={server.kafka}", f"--web.listen-address={address}"]
    exporter = ServerProcess("exporter", [tool("KAFKA_EXPORTER"), *words], tmp_path)
    exporter.start()
    try:
        # A page that it makes while another is asked for may lack a part.
        pages: list[str] = []

        def is_whole() -> bool:
            pages.append(read_page(address))
            return pages[-1].count("kafka_consumergroup_lag_sum{") == len(LAG)

        exporter.wait_until_ready(is_whole, WITHIN_S)
        theirs = pages[-1]
    finally:
        exporter.kill()
    ours = read_page(server.http)
    for name in ("kafka_consumergroup_current_offset", "kafka_consumergroup_lag"):
        shown = read_gauges(theirs, name, "consumergroup")
        # It says -1 where we say nothing.
        known = {
            group: {number: value for number, value in rows.items() if value >= 0}
            for group, rows in shown.items()
        }
        assert known == read_gauges(ours, name, "consumergroup")
    for name in ("kafka_consumergroup_members", "kafka_consumergroup_lag_sum"):
        pattern = re.compile(rf"^{name}{{(.*)}} (\S+)$", re.MULTILINE)
        both = [
            {(tuple(sorted(_LABEL.findall(labels))), float(value)) for labels, value in found}
            for found in (pattern.findall(theirs), pattern.findall(ours))
        ]
        assert both[0] == both[1], name
    assert (
        read_gauges(theirs, "kafka_consumergroup_lag", "consumergroup")["working"] == LAG["working"]
    )


def test_kminion_shows_it(server: MusterServer, tmp_path: Path) -> None:
    (port,) = find_ports(1)
    config = tmp_path / "kminion.yml"
    config.write_text(
        f"kafka: {{brokers: ['{server.kafka}']}}\n"
        "minion: {consumerGroups: {enabled: true, scrapeMode: adminApi, granularity: partition}}\n"
        f"exporter: {{host: '{HOST}', port: {port}}}\n"
    )
    program = tool("KMINION")
    os.environ["CONFIG_FILEPATH"] = str(config)
    kminion = ServerProcess("kminion", [program], tmp_path)
    kminion.start()
    name = "kminion_kafka_consumer_group_topic_partition_lag"
    try:
        kminion.wait_until_ready(lambda: f"{name}{{" in read_page(f"{HOST}:{port}"), WITHIN_S)
        assert read_gauges(read_page(f"{HOST}:{port}"), name, "group_id") == LAG
    finally:
        kminion.kill()


def test_kcl_shows_it(server: MusterServer) -> None:
    for group, lags in LAG.items():
        words = ["--no-config-file", "--bootstrap-servers", server.kafka]
        done = subprocess.run(
            [tool("KCL"), *words, "group", "describe", group],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        rows = re.findall(rf"^\s*{TOPIC}\s+(\d+)\s+(.*)$", done.stdout, re.MULTILINE)
        shown = {int(number): rest.split() for number, rest in rows}
        for number, lag in lags.items():
            assert str(lag) in shown[number], done.stdout


def test_kafkactl_shows_it(server: MusterServer, tmp_path: Path) -> None:
    config = tmp_path / "kafkactl.yml"
    config.write_text(
        f"contexts: {{default: {{brokers: ['{server.kafka}']}}}}\ncurrent-context: default\n"
    )
    for group, lags in LAG.items():
        done = subprocess.run(
            [tool("KAFKACTL"), "-C", config, "describe", "consumer-group", group, "-o", "yaml"],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        total = sum(int(lag) for lag in re.findall(r"^\s*lag: (\d+)$", done.stdout, re.MULTILINE))
        assert total == sum(lags.values()), done.stdout
