"""Scenarios as texts: commands, and below ``----`` what they bring about.

The first line of a text says which behaviour it shows. Commands of one block are submitted
together, in one turn. After ``----`` come their answers, the records written (``+``) and the
deadlines that changed (``@``); ``pytest tests/scenarios --rewrite`` (or ``MUSTER_REWRITE=1``)
records them anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from coordinator.core.state.consumer import consumer_group
from model.configs.coordinator_settings import CoordinatorSettings
from model.log.side_records import TokenStartKey
from tests.scenarios.commands import Commands, Line, parse_line
from tests.scenarios.server import ScenarioServer
from tests.scenarios.text import (
    format_answer,
    format_deadlines,
    format_record,
    format_side,
    format_transactions,
)
from tests.support.virtual.server import Pending

FOLDER = Path(__file__).parent
TEXTS = sorted(FOLDER.rglob("*.txt"))
DIVIDER = "----"


@dataclass
class Block:
    """Commands and what is expected of them."""

    commands: list[str]
    expected: list[str]


@dataclass(frozen=True)
class Waiting:
    """A command that has no answer yet, and what it is called."""

    name: str
    pending: Pending


def parse_text(text: str) -> tuple[list[str], list[Block]]:
    """The comment at the top, and the blocks."""
    paragraphs = [part.splitlines() for part in text.strip().split("\n\n")]
    head = paragraphs.pop(0)
    assert all(line.startswith("#") for line in head), "a scenario begins with what it shows"
    blocks = []
    for lines in paragraphs:
        at = lines.index(DIVIDER) if DIVIDER in lines else len(lines)
        blocks.append(Block(lines[:at], lines[at + 1 :]))
    return head, blocks


def format_text(head: list[str], blocks: list[Block]) -> str:
    parts = [head, *([*block.commands, DIVIDER, *block.expected] for block in blocks)]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def run_blocks(blocks: list[Block]) -> Iterator[list[str]]:
    """What each block brings about."""
    settings = CoordinatorSettings()
    server: ScenarioServer | None = None
    waiting: list[Waiting] = []
    commands: Commands | None = None
    for block in blocks:
        lines = [parse_line(text) for text in block.commands if not text.startswith("#")]
        if server is None and lines[0].verb == "settings":
            settings = compute_settings(lines[0])
            yield []
            continue
        if server is None or commands is None:
            server = ScenarioServer(settings)
            commands = Commands(server)
        yield run_block(server, commands, lines, waiting)


def compute_settings(line: Line) -> CoordinatorSettings:
    """Kafka's names, with ``.`` for ``_``."""
    values: dict[str, object] = {}
    for name, text in line.options.items():
        field = name.replace(".", "_")
        match getattr(CoordinatorSettings(), field):
            case str():
                values[field] = text
            case tuple():
                values[field] = tuple(text.split(","))
            case _:
                values[field] = int(text)
    return CoordinatorSettings(**values)  # type: ignore[arg-type]


def run_block(
    server: ScenarioServer, commands: Commands, lines: list[Line], waiting: list[Waiting]
) -> list[str]:
    """Answers to what was asked in earlier blocks come first; ``waiting`` is what has none yet."""
    pending = [(line, commands.submit(line)) for line in lines]
    server.settle()
    output = []
    for late in [late for late in waiting if late.pending.is_answered]:
        waiting.remove(late)
        output += [f"{late.name}: {text}" for text in format_answer(late.pending.answer)]
    for line, answer in pending:
        if answer is None:
            continue
        name = line.words[1] if len(line.words) > 1 else line.options.get("new", "")
        prefix = f"{name}: " if len(lines) > 1 and name else ""
        if answer.is_answered:
            output += [prefix + text for text in format_answer(answer.answer)]
        else:
            output.append(f"{prefix}no answer yet")
            waiting.append(Waiting(f"{line.verb} {name}".strip(), answer))
    for write in server.take_written():
        # The time of tokens is of a start, and of no group.
        side = (record for record in write.side if not isinstance(record.key, TokenStartKey))
        output += [f"+ {format_side(record)}" for record in side]
        output += [f"+ {format_record(record)}" for record in write.records]
        output += [f"+ {text}" for text in format_transactions(write.transactions)]
    output += [f"@ {text}" for text in format_deadlines(server.take_deadlines())]
    output += [f"! {name} is asked for an assignment" for name in server.take_asked()]
    return output


def is_rewriting(config: pytest.Config) -> bool:
    by_option = config.getoption("--rewrite", default=False)
    return bool(by_option) or os.environ.get("MUSTER_REWRITE", "0") not in ("", "0")


@pytest.mark.parametrize("path", TEXTS, ids=[path.stem for path in TEXTS])
def test_scenario(path: Path, pytestconfig: pytest.Config) -> None:
    head, blocks = parse_text(path.read_text(encoding="utf-8"))
    actual = [
        Block(block.commands, output)
        for block, output in zip(blocks, run_blocks(blocks), strict=True)
    ]
    if is_rewriting(pytestconfig):
        path.write_text(format_text(head, actual), encoding="utf-8")
    assert format_text(head, actual) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", TEXTS, ids=[path.stem for path in TEXTS])
def test_scenario_where_numbers_are_given_back_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing depends on which numbers the partitions of a group have."""
    monkeypatch.setattr(consumer_group, "LOOK_CHANGES", -1_000_000)
    head, blocks = parse_text(path.read_text(encoding="utf-8"))
    actual = [
        Block(block.commands, output)
        for block, output in zip(blocks, run_blocks(blocks), strict=True)
    ]
    assert format_text(head, actual) == path.read_text(encoding="utf-8")


def test_there_are_scenarios_and_each_says_what_it_shows() -> None:
    assert len(TEXTS) >= 30
    heads = {parse_text(path.read_text(encoding="utf-8"))[0][0] for path in TEXTS}
    assert len(heads) == len(TEXTS)
    assert len({path.stem for path in TEXTS}) == len(TEXTS), "tests are named for them"
