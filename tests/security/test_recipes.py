"""A recipe of docs/security.md is typed in an empty folder, word for word but for the ports."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.groups import CHECKOUT
from tests.server import MusterServer

TEXT: Final = (CHECKOUT / "docs" / "security.md").read_text()
_BLOCK: Final = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FIRST: Final = "First: a certificate for the server"
SERVE: Final = "muster serve "
_MUSTER: Final = f'muster() {{ {shlex.quote(sys.executable)} -m cli "$@"; }}\n'
_PYTHON: Final = f'python3() {{ {shlex.quote(sys.executable)} "$@"; }}\n'


def find_blocks(heading: str) -> list[tuple[str, str]]:
    """(language, text) of the blocks of a recipe."""
    _, _, after = TEXT.partition(f"### {heading}\n")
    return _BLOCK.findall(re.split(r"^##", after, maxsplit=1, flags=re.MULTILINE)[0])


class Terminal:
    """What is typed in a folder; the ports are those that the first server found free."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server: MusterServer | None = None
        self.ports: dict[str, str] = {}
        self.environment = {
            **os.environ,
            "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT}/sdk",
            "MUSTER_SERVER": "127.0.0.1:50051",
        }

    def type(self, kind: str, text: str) -> str:
        if text.startswith(SERVE):
            self._serve(shlex.split(text.removeprefix(SERVE)))
            return ""
        for port, found in self.ports.items():
            text = text.replace(port, found)
        command = [sys.executable, "-"] if kind == "python" else ["bash", "-e"]
        return self._run(command, text if kind == "python" else _MUSTER + _PYTHON + text)

    def stop(self) -> None:
        if self.server is not None:
            self.server.kill()

    def _run(self, command: list[str], text: str) -> str:
        done = subprocess.run(
            command,
            input=text,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _serve(self, arguments: list[str]) -> None:
        """Start the server, again if it runs, with the listeners of its file on free ports."""
        self.stop()
        at = arguments.index("--data-dir")
        assert arguments[at + 1] == "data"
        given = [*arguments[:at], *arguments[at + 2 :]]
        for line in (self.folder / "server.properties").read_text().splitlines():
            name, _, address = line.partition("=")
            if name in ("listeners", "listen.grpc"):
                before, _, port = address.rpartition(":")
                given.append(f"--{name}={before}:{self.ports.get(port, '0')}")
        self.server = MusterServer(self.folder / "data", *given, working_folder=self.folder)
        self.server.start()
        for name, port in (("kafka", "9093"), ("grpc", "50051")):
            self.ports[port] = str(self.server.address(name)[1])
        self.environment["MUSTER_SERVER"] = self.server.grpc


@pytest.mark.parametrize("recipe", ["Passwords: SASL_SSL with SCRAM"])
def test_a_recipe_leads_to_a_working_client(recipe: str, tmp_path: Path) -> None:
    check_recipe(recipe, tmp_path)


def check_recipe(recipe: str, folder: Path) -> None:
    blocks = find_blocks(recipe)
    programs = sum(kind == "python" for kind, _ in blocks)
    terminal = Terminal(folder)
    said = []
    try:
        for kind, text in (*find_blocks(FIRST), *blocks):
            said.append(terminal.type(kind, text))
    finally:
        terminal.stop()
    assert "".join(said).count("alice has 4 partitions") == programs > 0
