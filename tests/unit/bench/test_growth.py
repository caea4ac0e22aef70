"""Slopes, limits and the page of the growth of costs; and a server whose CPU is measured."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench.growth import __main__ as growth
from bench.growth.catalogue import AXES, CLASSIC_MAX, COMMIT_MAX, SERIES
from bench.growth.page import draw_plot, format_cost, format_page, make_plots
from bench.growth.point import AXES as PROCESSES
from bench.growth.point import measure
from bench.growth.series import (
    CPU_MS,
    LAST_TOLERANCE,
    MIB,
    TOLERANCE,
    Measured,
    Series,
    fit_slope,
    select_points,
)
from bench.growth.timing import Case, profile_case, time_case
from bench.log_plot import Curve, draw
from cli.serve.collector import GarbageCollector
from model.commands.offsets import COMMIT_PARTITIONS_MAX
from model.configs.coordinator_settings import CoordinatorSettings

MACHINE: dict[str, Any] = {
    "date": "2030-01-02 03:04 UTC",
    "cpu": "Some CPU",
    "cores": 8,
    "memory_gib": 16.0,
    "kernel": "Linux 1.2",
    "file_system": "ext4",
    "fsync_ms": {"p50": 0.1, "p99": 0.2},
    "load_before": 0.1,
    "versions": dict.fromkeys(["muster", "python", "numpy", "rocksdict", "crc32c", "kio"], "1.0"),
}
SIZES = (10, 100, 1_000, 10_000)


def make_points(exponent: float, constant: float = 0) -> dict[int, float]:
    return {size: constant + 0.001 * size**exponent for size in SIZES}


def make_series(expected: float, **fields: Any) -> Series:
    return Series("members", "join", "one joins", expected, "What it does.", **fields)


@pytest.mark.parametrize("exponent", [-0.5, 0, 1, 2])
def test_the_slope_is_the_exponent(exponent: float) -> None:
    assert fit_slope(make_points(exponent)) == pytest.approx(exponent)


def test_the_slope_is_that_of_the_least_squares() -> None:
    assert fit_slope({10: 1, 100: 1, 1000: 10}) == pytest.approx(0.5)


def test_the_last_decade_shows_what_a_constant_hides() -> None:
    one = Measured(make_series(0), make_points(1, constant=0.5))
    assert one.slope < 0.5
    assert one.last_slope == pytest.approx(fit_slope({1_000: 1.5, 10_000: 10.5}))


@pytest.mark.parametrize(
    ("slope", "last_slope", "is_too_steep"),
    [
        (1 + TOLERANCE - 0.01, 1 + LAST_TOLERANCE - 0.01, False),
        (1 + TOLERANCE + 0.01, 1, True),
        (1, 1 + LAST_TOLERANCE + 0.01, True),
    ],
)
def test_either_slope_may_be_too_steep(
    slope: float, last_slope: float, is_too_steep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Measured, "slope", slope)
    monkeypatch.setattr(Measured, "last_slope", last_slope)
    assert Measured(make_series(1)).is_too_steep is is_too_steep


def test_points_beyond_a_limit_of_the_product_do_not_count() -> None:
    limited = make_series(1, limit=1_000)
    assert list(select_points(limited, make_points(1))) == [10, 100, 1_000]
    assert list(select_points(make_series(1), {100: 1, 10: 1})) == [10, 100]


def test_the_limits_are_those_of_the_product() -> None:
    assert CoordinatorSettings().group_max_size == CLASSIC_MAX
    assert COMMIT_PARTITIONS_MAX == COMMIT_MAX


def test_every_series_has_an_axis_and_a_text() -> None:
    names = {axis.name for axis in AXES}
    assert {series.axis for series in SERIES} == names
    assert len({(series.axis, series.name) for series in SERIES}) == len(SERIES)
    assert {axis.process for axis in AXES} == set(PROCESSES)
    assert all(series.text.endswith(".") for series in SERIES)


def make_measured(exponent: float) -> dict[str, list[Measured]]:
    return {
        axis.name: [
            Measured(one, select_points(one, make_points(exponent)))
            for one in SERIES
            if one.axis == axis.name
        ]
        for axis in AXES
    }


def test_the_page_has_every_series_with_its_slopes() -> None:
    page = format_page(MACHINE, AXES, make_measured(0))
    assert "Nothing in this run." in page
    assert "too steep**" not in page
    for series in SERIES:
        assert f"| {series.title} |" in page
        assert series.text in page
    assert page.count("| 0.00 | 0.00 |") == len(SERIES)
    assert "Ends at 9,000: `group.max.size`." in page


def test_the_page_says_what_is_steeper_than_expected_and_why() -> None:
    measured = make_measured(1)
    (heartbeat,) = [one for one in measured["members"] if one.series.name == "heartbeat"]
    heartbeat.profile = ("40% scan (some/module.py)",)
    page = format_page(MACHINE, AXES, measured)
    steep = page.split("## Steeper than expected")[1].split("## By")[0]
    line = "- members, a steady heartbeat: slope 1.00, in the last decade 1.00, expected 0; 10.0 ms"
    assert line in steep
    assert "40% scan (some/module.py)" in steep
    assert "one joins" not in steep
    assert page.count("**too steep**") == sum(series.expected == 0 for series in SERIES)


def test_each_plot_that_the_page_shows_is_drawn() -> None:
    measured = make_measured(1)
    page = format_page(MACHINE, AXES, measured)
    for axis in AXES:
        for plot in make_plots(axis, measured[axis.name]):
            assert f"(growth/{plot.file_name})" in page
            drawn = draw_plot(axis, plot)
            assert drawn.count("<polyline") == len(plot.measured)
            assert all(one.series.unit == plot.unit for one in plot.measured)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0071, CPU_MS, "7.10 µs"),
        (12.34, CPU_MS, "12.3 ms"),
        (4_549, CPU_MS, "4.55 s"),
        (532.6, MIB, "533 MiB"),
    ],
)
def test_costs_for_people(value: float, unit: str, text: str) -> None:
    assert format_cost(value, unit) == text


def test_a_cost_in_proportion_is_as_steep_as_the_grey_lines() -> None:
    def read_ends(line: str) -> list[float]:
        return [
            float(line.split(f'{name}="')[1].split('"')[0]) for name in ("x1", "y1", "x2", "y2")
        ]

    drawn = draw([Curve("c", {10: 1, 1_000: 100})], title="T", label="L", unit="ms")
    grey = next(line for line in drawn.splitlines() if "#e4e4e4" in line)
    x1, y1, x2, y2 = read_ends(grey)
    (points,) = [line for line in drawn.splitlines() if "<polyline" in line]
    first, last = points.split('points="')[1].split('"')[0].split(" ")
    (left, low), (right, high) = (map(float, pair.split(",")) for pair in (first, last))
    assert (left, right) == (x1, x2)
    assert high - low == pytest.approx(y2 - y1, abs=0.2)


def test_figures_are_written_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured = make_measured(1)
    measured["topics"][0].profile = ("40% scan",)
    stored = {"machine": MACHINE, "series": growth.figures_to_json(measured)}
    assert growth.read_figures(json.loads(json.dumps(stored))) == measured
    (tmp_path / growth.FIGURES).write_text(json.dumps(stored), encoding="utf-8")
    monkeypatch.setattr(growth, "PLOTS", tmp_path)
    monkeypatch.setattr(growth, "PAGE", tmp_path / "GROWTH.md")
    assert growth.main(["--page"]) == 0
    page = (tmp_path / "GROWTH.md").read_text(encoding="utf-8")
    assert page == format_page(MACHINE, AXES, measured)


def test_the_least_of_the_rounds_counts() -> None:
    prepared: list[None] = []
    worked: list[None] = []

    def work() -> int:
        worked.append(None)
        return 10

    case = Case("c", work, lambda: prepared.append(None), rounds=3)
    assert 0 <= time_case(case) < 1e6
    assert (len(prepared), len(worked)) == (3, 3)


def test_a_profile_names_functions_without_paths_of_the_machine() -> None:
    lines = profile_case(Case("c", lambda: len([fit_slope(make_points(1)) for _ in range(99)])))
    assert any("fit_slope (bench/growth/series.py)" in line for line in lines)
    assert not any("(/" in line for line in lines)


@pytest.mark.parametrize("process", PROCESSES)
def test_every_series_is_measured_on_a_server(
    process: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # They change the collector of the whole process.
    monkeypatch.setattr(GarbageCollector, "hold", lambda self: None)
    monkeypatch.setattr(GarbageCollector, "settle", lambda self: None)
    found = measure(process, 10, tmp_path, None)
    axes = [axis.name for axis in AXES if axis.process == process]
    assert set(found) == {series.name for series in SERIES if series.axis in axes}
    assert all(isinstance(value, float) and value > 0 for value in found.values())


@pytest.mark.parametrize("value", ["Infinity", "NaN", "0.0"])
def test_a_figure_that_is_no_cost_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = subprocess.CompletedProcess([], 0, stdout=f'{{"join": {value}}}')
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    with pytest.raises(growth.NotMeasured, match="join of members at 10 is"):
        growth.run_point("members", 10)
