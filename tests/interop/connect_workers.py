"""Two workers of Kafka Connect 4.3, unmodified: a group of the type `connect` on our wire, whose
configs, offsets and status lie in compacted topics here. `make connect` runs it.
"""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.groups import CHECKOUT
from tests.kafka.broker import LOG_CONFIG
from tests.kafka.jars import CONNECT
from tests.kafka.java import JavaProgram, compute_class_path
from tests.kafka.prerequisites import check_java
from tests.kafka.tools import SHORT_RUN_JVM_OPTIONS
from tests.server import MusterServer
from tests.support.waiting import wait_until

WITHIN_S = 180.0
GROUP = "workers"
LINES = 20
FILES = "org.apache.kafka.connect.file.FileStream"

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]


class Worker:
    """A worker in distributed mode, and its REST door."""

    def __init__(self, server: MusterServer, folder: Path, name: str) -> None:
        self.address = f"127.0.0.1:{find_free_port()}"
        configs = folder / f"{name}.properties"
        settings = worker_settings(server, self.address)
        configs.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        self.program = JavaProgram(
            [
                *(check_java(), *SHORT_RUN_JVM_OPTIONS),
                f"-Dlog4j2.configurationFile={LOG_CONFIG}",
                *("-cp", compute_class_path([CONNECT])),
                *("org.apache.kafka.connect.cli.ConnectDistributed", str(configs)),
            ]
        )

    def ask(self, path: str, put: object = None) -> Any:
        """What the worker answers; None while it cannot: it starts, or the workers rebalance."""
        data = None if put is None else json.dumps(put).encode()
        request = urllib.request.Request(
            f"http://{self.address}{path}",
            data,
            {"Content-Type": "application/json"},
            method="GET" if put is None else "PUT",
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except (OSError, urllib.error.HTTPError):
            return None


def find_free_port() -> int:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as held:
        port: int = held.getsockname()[1]
    return port


def worker_settings(server: MusterServer, address: str) -> dict[str, object]:
    text = "org.apache.kafka.connect.storage.StringConverter"
    storage = {
        f"{name}.storage.{key}": value
        for name in ("config", "offset", "status")
        for key, value in (("topic", f"connect-{name}"), ("replication.factor", 1))
    }
    return storage | {
        "bootstrap.servers": server.kafka,
        "group.id": GROUP,
        "key.converter": text,
        "value.converter": text,
        "offset.storage.partitions": 2,
        "status.storage.partitions": 2,
        "offset.flush.interval.ms": 500,
        "listeners": f"http://{address}",
        "plugin.discovery": "service_load",
        "session.timeout.ms": 10_000,
        "heartbeat.interval.ms": 500,
        # How long the work of a worker that is gone waits for its return.
        "scheduled.rebalance.max.delay.ms": 2_000,
    }


class Workers:
    """The workers of a test, all of which end with it."""

    def __init__(self, server: MusterServer, folder: Path) -> None:
        self._server = server
        self._folder = folder
        self.running: list[Worker] = []

    def start(self) -> Worker:
        name = f"worker-{len(list(self._folder.glob('*.properties')))}"
        self.running.append(Worker(self._server, self._folder, name))
        return self.running[-1]

    def kill(self, worker: Worker) -> None:
        """SIGKILL."""
        worker.program.kill()
        self.running.remove(worker)

    def ask(self, path: str, put: object = None) -> Any:
        return self.running[0].ask(path, put)

    def wait_until(self, condition: Callable[[], bool], what: str) -> float:
        """The seconds that it took. Raises AssertionError with what the workers logged."""

        def describe() -> str:
            logs = [line for worker in self.running for line in worker.program.log[-15:]]
            return "\n".join([what, *logs])

        return wait_until(condition, describe, WITHIN_S, between=lambda: time.sleep(0.1))

    def wait_until_formed(self, count: int) -> float:
        """Until the group is stable with so many members."""
        return self.wait_until(
            lambda: describe_group(self._server) == (count, "connect", "GROUP_STATE_STABLE"),
            f"{count} workers form a group",
        )

    def create(self, name: str, settings: dict[str, str]) -> None:
        path = f"/connectors/{name}/config"
        self.wait_until(lambda: self.ask(path, settings) is not None, f"{name} is created")

    def find_task(self, name: str) -> str | None:
        """The address of the worker on which the one task of a connector runs, if it does."""
        status = self.ask(f"/connectors/{name}/status")
        tasks = [task for task in (status or {}).get("tasks", ()) if task["state"] == "RUNNING"]
        return str(tasks[0]["worker_id"]) if tasks else None


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    settings = {"group.initial.rebalance.delay.ms": 0}
    with MusterServer(tmp_path / "data", topics={"lines": 2}, settings=settings) as running:
        yield running


@pytest.fixture
def workers(server: MusterServer, tmp_path: Path) -> Iterator[Workers]:
    started = Workers(server, tmp_path)
    yield started
    for worker in started.running:
        worker.program.kill()


def run_muster(*words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "cli", *words, "-o", "json"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    return json.loads(done.stdout) if done.returncode == 0 else None


def describe_group(server: MusterServer) -> tuple[int, str, str] | None:
    """Its members, type and state."""
    found = run_muster("group", "describe", GROUP, "--server", server.grpc)
    if found is None:
        return None
    return len(found["members"]), found["protocol_type"], found["state"]


class Lines:
    """A file whose lines a connector reads, and the one into which another writes them."""

    def __init__(self, folder: Path) -> None:
        self.source, self.sink = folder / "in.txt", folder / "out.txt"
        self.source.touch()
        self._count = 0

    def write_and_wait(self, workers: Workers) -> float:
        """Until all lines that were ever written have come out."""
        with self.source.open("a") as file:
            file.writelines(f"line {self._count + number}\n" for number in range(LINES))
        self._count += LINES
        wanted = {f"line {number}" for number in range(self._count)}
        return workers.wait_until(
            lambda: self.sink.exists() and wanted <= set(self.sink.read_text().splitlines()),
            f"{self._count} lines came out",
        )


def test_two_workers_share_connectors_and_take_over(
    server: MusterServer, workers: Workers, tmp_path: Path
) -> None:
    figures: dict[str, float] = {}
    lines = Lines(tmp_path)
    workers.start()
    workers.start()
    figures["two workers form a group"] = workers.wait_until_formed(2)
    workers.create(
        "reads",
        {"connector.class": f"{FILES}SourceConnector", "file": str(lines.source), "topic": "lines"},
    )
    workers.create(
        "writes",
        {"connector.class": f"{FILES}SinkConnector", "file": str(lines.sink), "topics": "lines"},
    )
    figures["lines go through both connectors"] = lines.write_and_wait(workers)

    server.kill()
    server.start()
    figures["lines go on after a kill -9 of the server"] = lines.write_and_wait(workers)
    workers.wait_until_formed(2)

    workers.wait_until(lambda: workers.find_task("reads") is not None, "the source runs")
    owner = workers.find_task("reads")
    (killed,) = (worker for worker in workers.running if worker.address == owner)
    workers.kill(killed)
    figures["the other worker takes over"] = lines.write_and_wait(workers)
    workers.wait_until_formed(1)
    assert workers.find_task("reads") == workers.running[0].address

    workers.start()
    figures["another worker joins"] = workers.wait_until_formed(2)
    lines.write_and_wait(workers)
    for what, seconds in figures.items():
        print(f"{what}: {seconds:.1f} s")
