"""Reading a program's JSON lines, with a shell in place of Java."""

import time

import pytest

from tests.kafka.java import JavaError, JavaProgram


def shell(script: str) -> JavaProgram:
    return JavaProgram(["/bin/sh", "-c", script])


def test_waits_for_the_event_that_was_asked_for_and_keeps_the_others() -> None:
    with shell(
        """echo '{"event":"a"}'; echo noise; echo '{"event":"b","n":1}'; exec cat"""
    ) as program:
        assert program.wait_for("b") == {"event": "b", "n": 1}
        assert [event["event"] for event in program.events] == ["a", "b"]
        assert program.log == ["noise"]


def test_an_event_within_a_line_that_a_library_has_begun() -> None:
    with shell("""printf '%%3|FAIL| {thrd: '; echo '{"event":"a"}'; exec cat""") as program:
        assert program.wait_for("a") == {"event": "a"}
        assert not program.log


def test_each_event_is_awaited_once() -> None:
    with shell("""echo '{"event":"a","n":1}'; echo '{"event":"a","n":2}'; exec cat""") as program:
        assert program.wait_for("a")["n"] == 1
        assert program.wait_for("a")["n"] == 2


def test_a_condition_passes_over_events_of_the_same_name() -> None:
    with shell("""echo '{"event":"a","n":1}'; echo '{"event":"a","n":2}'; exec cat""") as program:
        assert program.wait_for("a", lambda event: event["n"] > 1)["n"] == 2


def test_commands_reach_the_program() -> None:
    with shell("""read word; echo "{\\"event\\":\\"$word\\"}\"""") as program:
        program.send("close")
        program.wait_for("close")
        assert program.wait() == 0


def test_the_end_of_the_program_ends_the_waiting() -> None:
    with (
        shell("""echo '{"event":"a"}'; echo why >&2; exit 3""") as program,
        pytest.raises(JavaError, match=r"ended before an event 'b'(?s:.*)why"),
    ):
        program.wait_for("b")


def test_waiting_has_a_deadline() -> None:
    with shell("exec cat") as program:
        started = time.monotonic()
        with pytest.raises(JavaError, match=r"no event 'b' in 0\.1 s"):
            program.wait_for("b", timeout_s=0.1)
        assert 0.1 <= time.monotonic() - started < 5


def test_sending_to_a_program_that_has_ended_says_so() -> None:
    with shell("exit 0") as program:
        program.wait()
        with pytest.raises((JavaError, ValueError)):
            program.send("close")
