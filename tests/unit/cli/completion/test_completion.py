"""Completion as a real bash does it, with the script that `muster completion bash` prints."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.groups import CHECKOUT
from tests.unit.cli.admin.test_admin_commands import Server, invoke, server
from tests.unit.cli.admin.test_group_administration import commit

__all__ = ["server"]

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="needs bash")


_ASK = """COMP_WORDS=({line})
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_muster_completion muster
echo ${{COMPREPLY[*]}}"""
"""What bash does when Tab is pressed at the end of a line."""


class Terminal:
    """A bash that has read the script; `muster` is the command of this checkout."""

    def __init__(self, folder: Path, address: str = "127.0.0.1:1") -> None:
        self.folder = folder
        wrapper = folder / "muster"
        wrapper.write_text(
            f"#!/bin/sh\nexec {sys.executable} -c "
            '\'import sys; sys.argv[0] = "muster"; from cli.main import main; main()\' "$@"\n'
        )
        wrapper.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{folder}:{os.environ['PATH']}",
            "PYTHONPATH": f"{CHECKOUT}:{CHECKOUT}/sdk",
            "MUSTER_SERVER": address,
            "HOME": str(folder),
        }

    def complete(self, *lines: str) -> list[list[str]]:
        """What each line could be followed by, if Tab is pressed at its end."""
        asked = "\n".join(_ASK.format(line=line) for line in lines)
        done = subprocess.run(
            [str(BASH), "--norc", "-euc", f'eval "$(muster completion bash)"\n{asked}'],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
        assert (done.returncode, done.stderr) == (0, "")
        return [line.split() for line in done.stdout.splitlines()]


def test_commands_options_and_settings(tmp_path: Path) -> None:
    words = Terminal(tmp_path).complete(
        "muster grou",
        "muster group wat",
        "muster serve --listen.k",
        "muster serve --listen-k",
        "muster doctor --con",
        "muster group list --so",
    )
    assert words == [
        ["group"],
        ["watch"],
        ["--listen.kafka"],
        ["--listen-kafka"],
        ["--config", *find_settings("con")],
        ["--sort"],
    ]


def find_settings(prefix: str) -> list[str]:
    from cli.settings import SETTINGS

    return [f"--{name}" for name in SETTINGS if name.startswith(prefix)]


async def test_groups_and_topics_of_the_server(tmp_path: Path, server: Server) -> None:
    created = await server.run("topic", "create", "orders=2", "ordinary=1", "payments=1")
    assert created.exit_code == 0
    for group in ("billing", "billing-eu", "bill$(touch x)", "other"):
        await commit(server, group, "orders", 0)
    terminal = Terminal(tmp_path, server.address)
    nobody = Terminal(tmp_path)
    words = await asyncio.to_thread(
        terminal.complete, "muster topic delete ord", "muster group watch bil", "muster why o"
    )
    assert [sorted(each) for each in words] == [
        ["orders", "ordinary"],
        ["billing", "billing-eu"],
        ["other"],
    ]
    named = await asyncio.to_thread(
        nobody.complete, f"muster group describe --server {server.address} billing-"
    )
    assert named == [["billing-eu"]]
    assert not (tmp_path / "x").exists()


def test_a_server_that_is_not_there_is_no_word_on_the_terminal(tmp_path: Path) -> None:
    assert Terminal(tmp_path).complete("muster group watch b") == [[]]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str, tmp_path: Path) -> None:
    printed = invoke("completion", shell)
    assert printed.exit_code == 0
    assert "_MUSTER_COMPLETE=complete_" in printed.out
    assert "muster" in printed.out
    found = shutil.which(shell)
    if found is not None:
        file = tmp_path / "script"
        file.write_text(printed.out)
        assert subprocess.run([found, "-n", str(file)], check=False).returncode == 0


def test_no_option_writes_into_files_of_the_user() -> None:
    assert "--install-completion" not in invoke("--help").out
