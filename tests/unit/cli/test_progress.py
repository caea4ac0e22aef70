"""How far a job is: a line written anew on a terminal, few lines in a file, nothing if quiet."""

from __future__ import annotations

import io
from collections.abc import Callable
from threading import Event

import pytest

from cli.progress import Progress


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    """What a person looks at."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")


def look_each_second(progress: Progress, clock: Clock, seconds: int) -> None:
    for _ in range(seconds):
        clock.now += 1
        progress.look()


def test_a_file_has_a_line_every_ten_seconds() -> None:
    clock, file = Clock(), io.StringIO()
    progress = Progress(is_quiet=False, stream=file, clock=clock)
    look_each_second(progress, clock, 5)
    progress.begin("log is read")
    look_each_second(progress, clock, 4)
    assert file.getvalue() == ""
    look_each_second(progress, clock, 1)
    progress.count(1_500, 6_000, "bytes")
    look_each_second(progress, clock, 29)
    assert file.getvalue().splitlines() == [
        "  10.0 s  log is read …",
        "  20.0 s  log is read: 1,500 of 6,000 bytes (25%)",
        "  30.0 s  log is read: 1,500 of 6,000 bytes (25%)",
    ]


def test_a_terminal_has_one_line_which_goes_in_the_end() -> None:
    clock, terminal = Clock(), Terminal()
    progress = Progress(is_quiet=False, stream=terminal, clock=clock)
    with progress:
        progress.begin("x" * 200)
        look_each_second(progress, clock, 2)
        assert "\n" not in terminal.getvalue()
        first, second = terminal.getvalue().split("\r\x1b[K")[1:]
        assert (first[:10], second[:10]) == ("   1.0 s  ", "   2.0 s  ")
        assert len(first) == len(second) == 59
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_a_line_that_stays_takes_the_place_of_the_other(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock, terminal = Clock(), Terminal()
    progress = Progress(is_quiet=False, stream=terminal, clock=clock)
    progress.begin("tables")
    look_each_second(progress, clock, 1)
    progress.tell("records", 12)
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert capsys.readouterr().err == "   1.0 s  records: 12 rows\n"


def test_a_step_is_asked_how_far_it_is_from_another_thread() -> None:
    asked = Event()

    def measure() -> str:
        asked.set()
        return "half of it"

    terminal = Terminal()
    with Progress(is_quiet=False, stream=terminal) as progress:
        progress.begin("audit", measure)
        assert asked.wait(60)
    assert "s  audit: half of it" in terminal.getvalue()


@pytest.mark.parametrize("make", [io.StringIO, Terminal])
def test_quiet_is_nothing(
    make: Callable[[], io.StringIO], capsys: pytest.CaptureFixture[str]
) -> None:
    stream, clock = make(), Clock()
    with Progress(is_quiet=True, stream=stream, clock=clock) as progress:
        progress.begin("audit")
        look_each_second(progress, clock, 20)
        progress.tell("records", 12)
        progress.say("READY: 3")
        assert stream.getvalue() == capsys.readouterr().err == ""
        progress.warn("must be seen")
    assert (stream.getvalue(), capsys.readouterr().err) == ("", "must be seen\n")
