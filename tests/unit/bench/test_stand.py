"""Turns, the time limit, and invalid runs; starts no server."""

import dataclasses
import time

import pytest

from bench.__main__ import SCENARIOS, measure, parse
from bench.figures import Section
from bench.plan import QUICK
from bench.stand import BadRun, OutOfTime, Stand, check_report


def make_stand(limit_s: float = 60) -> Stand:
    return Stand(dataclasses.replace(QUICK, limit_s=limit_s, runs=2), time.monotonic())


def test_sides_take_turns() -> None:
    order: list[str] = []

    def side(name: str) -> dict[str, int]:
        order.append(name)
        return {"run": len(order)}

    with make_stand() as stand:
        runs = stand.interleave({"A": lambda: side("A"), "B": lambda: side("B")})
    assert order == ["A", "B", "A", "B"]
    assert runs == {"A": [{"run": 1}, {"run": 3}], "B": [{"run": 2}, {"run": 4}]}


def test_a_turn_that_has_begun_is_ended_and_no_other_begins() -> None:
    with make_stand() as stand:

        def take_all_the_time() -> dict[str, int]:
            stand._started_at -= 60
            return {}

        runs = stand.interleave({"A": take_all_the_time, "B": dict})
    assert runs == {"A": [{}], "B": [{}]}


def test_no_run_begins_when_the_time_is_over() -> None:
    with make_stand(limit_s=0) as stand, pytest.raises(OutOfTime, match="were over"):
        stand.interleave({"A": lambda: pytest.fail("it ran")})


@pytest.mark.parametrize("report", [{"errors": {"25": 3}}, {"changed": 1}, {"double_owned": 1}])
def test_a_bad_run_is_worth_nothing(report: dict[str, object]) -> None:
    with pytest.raises(BadRun):
        check_report(report)


def test_a_scenario_that_fails_is_a_section_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Stand) -> Section:
        """What it does."""
        raise BadRun("it broke")

    monkeypatch.setitem(SCENARIOS, "joins", fail)
    with make_stand() as stand:
        section = measure(stand, "joins")
    assert section.failure == "failed: it broke"
    assert section.rows == ()
    assert section.method == "What it does."


def test_only_known_scenarios_can_be_asked_for() -> None:
    assert parse(["--quick", "--only", "joins", "memory"]).only == ["joins", "memory"]
    with pytest.raises(SystemExit):
        parse(["--only", "jions"])
