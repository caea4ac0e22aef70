"""What the README shows is run: every command and every program, on other ports and folders."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.groups import CHECKOUT
from tests.server import MusterServer

README = (CHECKOUT / "README.md").read_text()
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = _BLOCK.findall(README)
PROGRAMS = [text for kind, text in BLOCKS if kind == "python"]
COMMANDS = [line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines() if line]
PLAIN = [line for kind, text in BLOCKS if not kind for line in text.splitlines()]
MUSTER = ".venv/bin/muster "


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MusterServer]:
    """The server that the README starts, but for its ports and its folder."""
    (command,) = [line for line in COMMANDS if line.startswith(f"{MUSTER}serve")]
    arguments = command.removeprefix(f"{MUSTER}serve ").split()
    assert arguments[:2] == ["--data-dir", "data"]
    with MusterServer(tmp_path_factory.mktemp("readme") / "data", *arguments[2:]) as server:
        yield server


def with_ports(text: str, server: MusterServer) -> str:
    """The text for this server; every address of the README must be one of its defaults."""
    for default, bound in (
        ("127.0.0.1:9092", server.kafka),
        ("127.0.0.1:50051", server.grpc),
        ("127.0.0.1:8080", server.http),
    ):
        text = text.replace(default, bound)
    return text


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_two_commands_are_targets_of_make() -> None:
    assert PLAIN == ["make run", "make test"]
    for line in PLAIN:
        assert run([*line.split(), "--dry-run"], CHECKOUT)


def test_the_programs_do_what_they_say(server: MusterServer, tmp_path: Path) -> None:
    kafka, grpc = (
        run([sys.executable, "-c", with_ports(text, server)], tmp_path) for text in PROGRAMS
    )
    assert kafka == "read 100 orders\n"
    assert grpc == "12 partitions, orders-0 at 42\n"


def test_the_commands_work(server: MusterServer, tmp_path: Path) -> None:
    run([sys.executable, "-c", with_ports(PROGRAMS[0], server)], tmp_path)
    shown = [line for line in COMMANDS if not line.startswith(f"{MUSTER}serve")]
    assert len(shown) >= 5
    for line in shown:
        if line.startswith(MUSTER):
            command = [sys.executable, "-m", "cli", *line.removeprefix(MUSTER).split()]
            if "config" not in command:
                command += ["--server", server.grpc]
            assert run(command, CHECKOUT), line
        else:
            assert run(with_ports(line, server).split(), tmp_path), line


def test_the_figures_beside_kafkas_are_those_of_the_benchmark() -> None:
    """Each number with its unit is in the same column of a row of the results."""
    results = (CHECKOUT / "bench" / "RESULTS.md").read_text().splitlines()
    rows = [line.split("|")[1:4] for line in results if line.startswith("| ")]
    table = README.partition("## Beside Kafka's own coordinator")[2].partition("\n## ")[0]
    shown = [line.split("|")[1:4] for line in table.splitlines() if line.startswith("| ")]
    figure = re.compile(r"\d[\d,.]* (?=a second|µs|ms|B\b)|\d[\d,.]*(?= with)")
    seen = 0
    for name, *columns in shown:
        for column, text in enumerate(columns, 1):
            for number in figure.findall(text):
                seen += 1
                measured = [row[column].split("(")[0].strip() for row in rows]
                numbers = {re.split(r"[ /]", each)[0] for each in measured}
                assert number.strip() in numbers, (name, number)
    assert seen >= 18
