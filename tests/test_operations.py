"""What docs/operations.md shows is run, in its order, on a server with a group.

`systemctl` starts and stops a server of the test; folders and addresses are other ones.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from muster import __version__
from storage.folder.watermark import FORMAT_VERSION
from tests.groups import CHECKOUT
from tests.server import MusterServer

PAGE = (CHECKOUT / "docs" / "operations.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
GROUP = "billing"
RIGHT, WRONG = 7, 0


class Machine:
    """A machine with the server of the page: its folders are below ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for path in ("var/lib/muster-backups", "etc/muster", "tmp", "bin"):
            (folder / path).mkdir(parents=True)
        (folder / "etc/muster/muster.properties").write_text("")
        wrapper = folder / "bin" / "muster"
        wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -m cli "$@"\n')
        wrapper.chmod(0o755)
        self.data = folder / "var/lib/muster"
        self.server = MusterServer(self.data, topics={"orders": 2})
        self.words: dict[str, str] = {}
        """Words of the page that are others here."""

    def run(self, line: str) -> str:
        """One line of the page; what it prints."""
        match line.split():
            case ["systemctl", "start", "muster"]:
                self.server.start()
                return ""
            case ["systemctl", "stop", "muster"]:
                assert self.server.terminate() == 0
                return ""
            case ["systemctl", "restart", "muster"]:
                assert self.server.terminate() == 0
                self.server.start()
                return ""
        return self._run_in_shell(line)

    def _run_in_shell(self, line: str) -> str:
        line = re.sub(r"(?<=\s)(?=/(var/lib|etc|tmp)/)", str(self.folder), line)
        for word, other in self.words.items():
            line = line.replace(word, other)
        environment = {
            **os.environ,
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT}/sdk",
            "MUSTER_SERVER": self.server.endpoints.get("grpc", ""),
            **{f"MUSTER_LISTEN_{name}": "127.0.0.1:0" for name in ("KAFKA", "GRPC", "HTTP")},
        }
        done = subprocess.run(
            ["bash", "-euc", line],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def commit(self, offset: int) -> None:
        consumer = Consumer({"bootstrap.servers": self.server.kafka, "group.id": GROUP})
        consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
        consumer.close()

    def read(self) -> int:
        """The committed offset."""
        consumer = Consumer({"bootstrap.servers": self.server.kafka, "group.id": GROUP})
        (found,) = consumer.committed([TopicPartition("orders", 0)], timeout=30)
        consumer.close()
        return int(found.offset)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.timeout(300)
@pytest.mark.long
def test_the_page_is_followed(machine: Machine) -> None:
    """Before and after some lines the test does or sees what the page is about."""
    before: dict[str, Callable[[], None]] = {
        "muster log backup /var/lib/muster-backups/first": lambda: machine.commit(RIGHT),
        "muster group undo billing --list": lambda: reset_wrongly(machine),
        "muster group offsets billing --as-of 1h": lambda: commit_wrongly(machine),
    }
    after: dict[str, Callable[[str], None]] = {
        "muster group undo billing --yes": lambda _: check(machine, RIGHT),
        "muster group reset billing --all-topics --to-as-of 1h --yes": lambda _: check(
            machine, RIGHT
        ),
        "muster group list": lambda said: check_listed(said),
        "muster log offsets /var/lib/muster.lost --group billing -o csv": check_offsets,
    }
    lines = [line for block in BLOCKS for line in block.splitlines()]
    assert not (before.keys() | after.keys()) - set(lines), "the page has changed: follow it"
    try:
        for line in lines:
            before.get(line, lambda: None)()
            said = machine.run(line)
            after.get(line, lambda _: None)(said)
        check(machine, RIGHT)
        assert machine.server.terminate() == 0
    finally:
        if machine.server.process is not None and machine.server.process.poll() is None:
            machine.server.kill()


def check(machine: Machine, offset: int) -> None:
    assert machine.read() == offset


def check_listed(said: str) -> None:
    assert GROUP in said


def check_offsets(said: str) -> None:
    assert f"orders,0,{RIGHT}" in said


def reset_wrongly(machine: Machine) -> None:
    machine.run(f"muster group reset {GROUP} --topic orders:0 --to-offset {WRONG} --yes")
    check(machine, WRONG)


def commit_wrongly(machine: Machine) -> None:
    """After a moment that is named instead of "an hour ago"."""
    time.sleep(0.05)
    machine.words["1h"] = str(time.time_ns() // 1_000_000)
    time.sleep(0.05)
    machine.commit(WRONG)
    check(machine, WRONG)


def test_the_page_names_the_format_and_the_version() -> None:
    assert f"(now {FORMAT_VERSION})" in PAGE
    assert f"reads up to {FORMAT_VERSION}: use a" in PAGE


def test_the_figures_are_those_of_the_benchmark() -> None:
    """Each figure of the table of sizes is a figure of the results, rounded."""
    results = (CHECKOUT / "bench" / "RESULTS.md").read_text()
    for name, shown in (
        ("heartbeats: rate", "111,000"),
        ("heartbeats: server CPU each", "8.8 µs"),
        ("commits of 1 partition: rate", "44,000"),
        ("commits of 1 partition, 8 in flight: rate", "86,000"),
        ("joins: rate", "5,800"),
        ("plain: new connections: rate", "11,400"),
        ("TLS: new connections: rate", "2,400"),
        ("memory a member with 10 partitions", "1.2 KB"),
    ):
        row = next(line for line in results.splitlines() if line.startswith(f"| {name} |"))
        measured = parse_figure(row.split("|")[3])
        assert abs(parse_figure(shown) / measured - 1) < 0.03, name
        assert shown in PAGE, name


def parse_figure(text: str) -> float:
    number, unit = re.match(r"\s*([\d,.]+)\s*(KB)?", text).groups()  # type: ignore[union-attr]
    return float(number.replace(",", "")) * (1_000 if unit else 1)


def test_every_file_that_it_installs_is_there() -> None:
    named = set(re.findall(r"packaging/[\w.-]+", PAGE))
    assert {"packaging/muster.service", "packaging/compose.yaml"} <= named
    assert [name for name in sorted(named) if not (CHECKOUT / name).exists()] == []


def test_the_changelog_has_this_version() -> None:
    changelog = (CHECKOUT / "CHANGELOG.md").read_text()
    headings = re.findall(r"^## \[?([^\]\s]+)", changelog, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert __version__ in headings
