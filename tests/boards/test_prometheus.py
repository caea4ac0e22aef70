"""A real Prometheus scrapes a server under load, and every query of boards and rules is run."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from tests.boards.queries import RULES, Query, list_boards, read_board_queries, read_rule_queries
from tests.kafka.processes import HOST, ServerProcess, find_ports
from tests.server import MusterServer
from tests.support.waiting import wait_until

GROUPS: Final = ("billing", "shipping")
SCRAPE_S: Final = 1
WITHIN_S: Final = 60.0

MAY_BE_EMPTY: Final = {
    # Nothing of the kind happens in this test.
    "muster-server.json: Members fenced and expired",
    "muster-server.json: Oldest rebalance",
    "muster-server.json: gRPC calls, p99",
    "muster-server.json: Errors",
    "muster-server.json: Translated requests",
    "muster-server.json: Connections",
    "muster-groups.json: In error",
    "muster-groups.json: Ahead of the end",
}
"""Panels of which at least one query finds nothing; those of a cluster are another matter."""
OF_THE_MACHINE: Final = {
    "MusterCommitsSlow",
    "MusterDiskFills",
    "MusterLogFlushSlow",
    "MusterLoopLate",
    "MusterRebalanceStorm",
}
"""What may be true of a machine that has other work, and of the load: it rebalances ten times
in a minute, which is extrapolated to more."""
OF_CLUSTERS: Final = "muster-upstream.json"


_MOVED: Final = {
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError._STATE,
}


class Load:
    """Two groups that consume what is produced, one of which begins anew all the time."""

    def __init__(self, kafka: str) -> None:
        self._kafka = kafka
        self._ending = Event()
        self._threads = [
            Thread(target=self._produce),
            Thread(target=self._consume, args=(GROUPS[0], False)),
            Thread(target=self._consume, args=(GROUPS[1], True)),
        ]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._kafka})
        while not self._ending.wait(0.05):
            for number in range(3):
                producer.produce("orders", b"x", partition=number)
            producer.flush(10)

    def _consume(self, group: str, restarts: bool) -> None:
        while not self._ending.is_set():
            consumer = Consumer(
                {
                    "bootstrap.servers": self._kafka,
                    "group.id": group,
                    "group.protocol": "consumer",
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                }
            )
            consumer.subscribe(["orders"])
            until = time.monotonic() + (2.0 if restarts else 3_600.0)
            while time.monotonic() < until and not self._ending.is_set():
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    try:
                        consumer.commit(message=message, asynchronous=False)
                    except KafkaException as error:
                        # It was given to another member meanwhile.
                        assert error.args[0].code() in _MOVED, error  # noqa: PT017
            consumer.close()


class Prometheus(ServerProcess):
    """Scrapes one server, in a folder of its own, on a free port."""

    def __init__(self, folder: Path, target: str) -> None:
        program = shutil.which("prometheus")
        if program is None:
            pytest.skip("needs prometheus: install prometheus")
        (folder / "alerts.yml").write_text(RULES.read_text())
        (folder / "prometheus.yml").write_text(
            json.dumps(
                {
                    "global": {
                        "scrape_interval": f"{SCRAPE_S}s",
                        "evaluation_interval": f"{SCRAPE_S}s",
                    },
                    "rule_files": ["alerts.yml"],
                    "scrape_configs": [
                        {"job_name": "muster", "static_configs": [{"targets": [target]}]}
                    ],
                }
            )
        )
        self.target = target
        (port,) = find_ports(1)
        self.address = f"{HOST}:{port}"
        command = [
            program,
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={self.address}",
        ]
        super().__init__("prometheus", command, folder)

    def ask(self, path: str, **words: str) -> Any:
        """The data of an answer; an error of the query fails the test."""
        try:
            with urlopen(f"http://{self.address}/api/v1/{path}?{urlencode(words)}") as answer:
                found = json.load(answer)
        except HTTPError as error:
            pytest.fail(f"{words}: {error.read().decode()}")
        assert found["status"] == "success", found
        return found["data"]

    def query(self, promql: str) -> list[Any]:
        """The samples of now."""
        return list(self.ask("query", query=promql)["result"])

    def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            return bool(urlopen(f"http://{self.address}/-/ready", timeout=5).status == 200)
        except OSError:
            return False


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """It has scraped a server under load for some time."""
    folder = tmp_path_factory.mktemp("prometheus")
    settings = {
        "metrics.lag.interval.ms": 1_000,
        "metrics.granularity": "partition",
        "metrics.compatible": "kafka_exporter,kafka-lag-exporter,burrow",
    }
    with MusterServer(folder / "muster", topics={"orders": 3}, settings=settings) as server:
        prometheus = Prometheus(folder, server.http)
        prometheus.start()
        try:
            prometheus.wait_until_ready(prometheus.is_ready, WITHIN_S)
            with Load(server.kafka):
                wait_until(
                    lambda: (
                        len(prometheus.query("muster_group_lag_seconds")) == len(GROUPS)
                        and len(prometheus.query("instance_group:muster_group_lag:deriv10m")) > 0
                        and bool(prometheus.query("rate(muster_offsets_committed_total[1m]) > 0"))
                    ),
                    within_s=WITHIN_S,
                )
                yield prometheus
        finally:
            prometheus.kill()


def test_every_query_of_the_boards_is_answered(prometheus: Prometheus) -> None:
    empty: set[str] = set()
    for board in list_boards():
        for query in read_board_queries(board):
            if not prometheus.query(query.promql):
                empty.add(query.where)
    empty = {where for where in empty if not where.startswith(OF_CLUSTERS)}
    assert empty <= MAY_BE_EMPTY


def test_every_query_of_the_rules_is_answered(prometheus: Prometheus) -> None:
    rules: list[Query] = list(read_rule_queries())
    for query in rules:
        found = prometheus.query(query.promql)
        is_wrong = query.where.startswith("Muster") and query.where not in OF_THE_MACHINE
        assert not (found and is_wrong), f"{query.where}: {found}"


def test_the_rules_are_healthy_and_nothing_is_wrong(prometheus: Prometheus) -> None:
    groups = prometheus.ask("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) == len(list(read_rule_queries()))
    unhealthy = [rule["name"] for rule in rules if rule.get("lastError")]
    assert unhealthy == []
    (target,) = prometheus.ask("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")


def test_lag_is_what_the_consumers_have_left(prometheus: Prometheus) -> None:
    lag = {
        sample["metric"]["group"]: float(sample["value"][1])
        for sample in prometheus.query("muster_group_lag")
    }
    assert set(lag) == set(GROUPS)
    produced = float(prometheus.query("sum(muster_partition_end_offset)")[0]["value"][1])
    for group in GROUPS:
        committed = prometheus.query(f'sum(muster_group_partition_offset{{group="{group}"}})')
        assert 0 <= lag[group] <= produced
        assert lag[group] == pytest.approx(produced - float(committed[0]["value"][1]), abs=400)


def test_promtool_takes_a_scrape(prometheus: Prometheus) -> None:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("needs promtool: install prometheus")
    with urlopen(f"http://{prometheus.target}/metrics") as answer:
        text = answer.read()
    done = subprocess.run(
        [program, "check", "metrics"], input=text, capture_output=True, timeout=60, check=False
    )
    complaints = (done.stdout + done.stderr).decode().splitlines()
    # The names of others are as they are.
    assert [line for line in complaints if line.startswith("muster_")] == []
    assert b"kafka_consumergroup_lag{" in text
