"""The command line as a whole: its imports, its exit codes, and that its page is complete."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from cli.main import COMMANDS, GROUPS, app
from cli.settings import SETTINGS
from tests.groups import CHECKOUT

HEAVY = ("grpc", "rich", "numpy", "rocksdict", "kio", "starlette", "uvicorn", "yaml", "structlog")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        cwd=CHECKOUT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_no_command_pays_for_what_others_import() -> None:
    code = (
        "import sys, cli.main; cli.main.make_app(); "
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", [*COMMANDS, *GROUPS])
def test_a_command_or_a_group_of_them_is_there_without_the_others(name: str) -> None:
    code = (
        f"import sys; from cli.main import COMMANDS, GROUPS, make_app; make_app({name!r}); "
        "print([n for n, (m, _) in {**COMMANDS, **GROUPS}.items() if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{[name]}\n"


def test_a_command_of_groups_is_there_without_the_others() -> None:
    code = (
        "import sys; from cli.main import make_app; make_app('group', 'list'); "
        "from cli.admin.group.group_commands import COMMANDS; "
        "print([n for n, (m, _) in COMMANDS.items() if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "['list']\n"


@pytest.mark.parametrize("words", [[], ["nothing"], ["--help"]])
def test_a_word_that_is_no_command_of_groups_shows_all(words: list[str]) -> None:
    shown = run("group", *words)
    assert "describe" in shown.stdout + shown.stderr or "No such command" in shown.stderr
    assert "Traceback" not in shown.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_alone_keeps_its_name(name: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 0, done.stderr
    assert f" {name} [OPTIONS]" in done.stdout


def find_commands(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every leaf command, by its words."""
    children = getattr(command, "commands", None)
    if children is None:
        yield path
        return
    for name, child in children.items():
        yield from find_commands(child, (*path, name))


COMMANDS = sorted(find_commands(get_command(app)))


def test_the_page_names_every_command() -> None:
    page = (CHECKOUT / "docs/cli.md").read_text()
    assert len(COMMANDS) >= 9
    assert [words for words in COMMANDS if f"muster {' '.join(words)}" not in page] == []


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_has_help(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*words, "--help"])
    assert result.exit_code == 0
    assert "Usage:" in result.stdout


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_that_asks_a_server_can_show_who_asks(words: tuple[str, ...]) -> None:
    command: Any = get_command(app)
    for word in words:
        command = command.commands[word]
    options = {option for each in command.params for option in each.opts}
    assert "--server" not in options or options & {"--command-config", "--server-config"}


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["topic", "nonsense"], ["topic", "list", "-o", "xml"], ["topic"]]
)
def test_what_is_no_command_is_a_matter_of_usage(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_suggestion_is_one_line_on_standard_error() -> None:
    done = run("serve", "--listen.kafak", "127.0.0.1:0")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "muster: unknown setting listen.kafak (flag --listen.kafak); did you mean listen.kafka?\n"
    )


def obey_interrupts() -> None:
    """As in a terminal: background processes of a shell, and their children, ignore the signal."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_an_interrupted_command_exits_with_130() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", "topic", "list", "--server", address],
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=obey_interrupts,
        )
        silent.settimeout(30)
        connection, _ = silent.accept()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=90)
        connection.close()
    assert process.returncode == 130
    assert b"Traceback" not in errors


def test_config_show_says_where_values_are_from(tmp_path: Path) -> None:
    file = tmp_path / "muster.toml"
    file.write_text('"node.id" = 3\n')
    done = run(
        "config", "show", "--origin", "-o", "json", "--config", str(file), "--data-dir", "x",
        MUSTER_NUM_PARTITIONS="4",
    )  # fmt: skip
    content = json.loads(done.stdout)
    assert content["_command"] == "config.show"
    settings = {entry["name"]: entry for entry in content["settings"]}
    assert list(settings) == list(SETTINGS)
    shown = {
        name: (settings[name]["value"], settings[name]["origin"], settings[name]["detail"])
        for name in ("node.id", "data.dir", "num.partitions", "listen.grpc")
    }
    assert shown == {
        "node.id": (3, "file", str(file)),
        "data.dir": ("x", "flag", "--data-dir"),
        "num.partitions": (4, "environment", "MUSTER_NUM_PARTITIONS"),
        "listen.grpc": ("127.0.0.1:50051", "default", ""),
    }


def test_config_show_prints_a_table() -> None:
    done = run("config", "show")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["NAME", "VALUE"]
    assert len(lines) == len(SETTINGS) + 1
    assert "group.consumer.assignors" in done.stdout
    assert "uniform,range" in done.stdout


def test_version_names_muster_first() -> None:
    listed = [json.loads(line) for line in run("version", "-o", "jsonl").stdout.splitlines()]
    assert [entry["name"] for entry in listed[:2]] == ["muster", "python"]
