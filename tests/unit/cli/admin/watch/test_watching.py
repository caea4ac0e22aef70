"""Looking at a group again and again: its end, and a server that is silent."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import pytest
from rich.console import Console

from cli.admin.watch.group_changes import Change
from cli.admin.watch.looks import AskedLooks
from cli.admin.watch.tellers import LINES_MAX, JsonLines, Lines, Screen, compute_lines
from cli.admin.watch.watching import watch
from cli.errors import CommandError, ExitCode
from muster.v1 import admin_pb2
from tests.unit.cli.admin.watch.test_group_changes import group, member

SILENT = CommandError("no answer", ExitCode.UNREACHABLE)
GONE = CommandError("GROUP_ID_NOT_FOUND", ExitCode.NOT_FOUND)
REFUSED = CommandError("GROUP_AUTHORIZATION_FAILED")

Look = admin_pb2.Group | CommandError


class Told:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def begin(self, group: admin_pb2.Group) -> None:
        self.lines.append(f"begin {group.group_epoch}")

    def tell(self, group: admin_pb2.Group, changes: Sequence[Change]) -> None:
        self.lines += [change.text for change in changes]

    def note(self, text: str) -> None:
        self.lines.append(f"note {text}")


def run(found: Sequence[Look], told: Told) -> None:
    """Watch with patience for 30 s; 10 s pass between two looks."""
    rest, passed_s = list(found), [0.0]

    def describe() -> admin_pb2.Group:
        look = rest.pop(0)
        if isinstance(look, CommandError):
            raise look
        return look

    def sleep(duration_s: float) -> None:
        passed_s[0] += duration_s

    looks = AskedLooks(describe, 10.0, lambda: passed_s[0], sleep)
    watch(looks, told, now_s=lambda: passed_s[0], patience_s=30.0)


def test_it_ends_with_the_group() -> None:
    told = Told()
    run([group(epoch=5), group(epoch=6), GONE], told)
    assert told.lines == [
        "begin 5",
        "group epoch 5 -> 6",
        "target assignment epoch 5 -> 6",
        "g is gone",
    ]


@pytest.mark.parametrize("error", [SILENT, GONE, REFUSED])
def test_the_error_of_the_first_look_ends_it(error: CommandError) -> None:
    told = Told()
    with pytest.raises(CommandError) as raised:
        run([error], told)
    assert (raised.value, told.lines) == (error, [])


def test_a_server_that_restarts_is_waited_for() -> None:
    told = Told()
    back = group(epoch=6)
    run([group(epoch=5), SILENT, SILENT, back, SILENT, SILENT, back, GONE], told)
    assert told.lines == [
        "begin 5",
        "note no answer",
        "note the server answers again",
        "group epoch 5 -> 6",
        "target assignment epoch 5 -> 6",
        "note no answer",
        "note the server answers again",
        "g is gone",
    ]


def test_a_server_that_stays_silent_is_not() -> None:
    told = Told()
    with pytest.raises(CommandError) as raised:
        run([group(), SILENT, SILENT, SILENT, group()], told)
    assert raised.value is SILENT


def test_a_right_that_is_taken_away_ends_it() -> None:
    with pytest.raises(CommandError) as raised:
        run([group(), REFUSED, group()], Told())
    assert raised.value is REFUSED


# ----------------------------------------------------------------------------------- tellers

TIME = "2026-11-29T06:00:00.500Z"
EVIL = Change("member_joined", "\x1b[2J [bold]m1[/bold]\njoined")


def clock() -> float:
    return 1_795_932_000.5


def test_lines_have_times_and_nothing_that_moves_the_cursor(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = Lines(clock, quiet=False)
    lines.begin(group(member("m1")))
    lines.tell(group(), [EVIL])
    lines.note("the server answers again")
    out, error = capsys.readouterr()
    assert out.splitlines() == [
        f"{TIME}  g: Consumer, Stable, group epoch 5, target assignment epoch 5, assignor uniform, "
        "members 1",
        f"{TIME}  \\x1b[2J [bold]m1[/bold]\\njoined",
    ]
    assert error == f"{TIME}  the server answers again\n"


def test_json_lines_begin_with_the_group(capsys: pytest.CaptureFixture[str]) -> None:
    lines = JsonLines(clock, quiet=True)
    lines.begin(group(member("m1")))
    lines.tell(group(), [EVIL, Change("group_gone", "g is gone", {"why": 1})])
    lines.note("not data")
    out, error = capsys.readouterr()
    first, second, third = map(json.loads, out.splitlines())
    assert (first["change"], first["group"]["members"][0]["member_id"]) == ("described", "m1")
    assert (second["text"], second["at"]) == (EVIL.text, TIME)
    assert third == {
        "at": TIME,
        "group_id": "g",
        "change": "group_gone",
        "text": "g is gone",
        "why": 1,
    }
    assert error == ""


def test_of_very_many_changes_the_first_are_shown() -> None:
    changes = [Change("x", str(number)) for number in range(LINES_MAX + 3)]
    lines = compute_lines(changes)
    assert len(lines) == LINES_MAX + 1
    assert lines[-1] == "and 3 more changes; -o jsonl has all"


def test_a_terminal_has_a_table_below_the_lines() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=160, color_system=None)
    evil = group(
        member("[bold]m1", [0, 1], revoked=[2]),
        member("m\x1b[2J2", waits=[("m1", [2])]),
        group_id="[red]g",
    )
    with Screen(console, clock) as screen:
        screen.begin(evil)
        screen.tell(evil, [EVIL])
    shown = out.getvalue()
    for text in (
        "[red]g: Consumer, Stable",
        "[bold]m1",
        "orders:0,1 (has to give up orders-2)",
        "m\\x1b[2J2",
        "orders-2 from m1",
        f"{TIME}  \\x1b[2J [bold]m1[/bold]\\njoined",
    ):
        assert text in shown
    assert "\x1b[2J" not in shown


def test_a_table_of_a_very_large_group_has_an_end() -> None:
    members = [member(f"m{number}") for number in range(1_000)]
    out = io.StringIO()
    with Screen(Console(file=out, width=200, height=2_000), clock) as screen:
        screen.begin(group(*members))
    assert "and 800 more members" in out.getvalue()
