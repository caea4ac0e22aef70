"""Measures how costs grow with members, groups, partitions, expressions and topics.

    python -m bench.growth [--quick] [--only AXIS ...]
    python -m bench.growth --page

Writes `bench/GROWTH.md`, a plot for each axis, and `growth/figures.json`, in about six minutes. A
quick run has no sizes above 1,000; quick and partial runs are stored in the cache instead. `--page`
writes page and plots from the figures of the last full run. Exits with 1 if something could not be
measured, but not because of a steep slope: the page says where there is one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from bench.figures import Json
from bench.growth.catalogue import AXES, SERIES
from bench.growth.page import draw_plot, format_page, make_plots
from bench.growth.series import CPU_MS, Axis, Measured, select_points
from bench.machine import describe_machine
from tests.kafka.jars import CACHE, CHECKOUT

PAGE = Path(__file__).parent.parent / "GROWTH.md"
PLOTS = Path(__file__).parent
FIGURES = "figures.json"
UNPROVEN = CACHE / "bench"
QUICK_MAX = 1_000
POINT_TIMEOUT_S = 300.0
MIB_BYTES = 2**20

Found = dict[str, dict[str, dict[int, float]]]
"""Figures by axis, series and size."""


Measures = Mapping[str, Sequence[Measured]]
"""The series of each axis by its name."""


class NotMeasured(Exception):
    """A point that failed; for the user."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Reports progress on standard error."""

    began_s: float

    def note(self, what: str) -> None:
        print(f"{time.monotonic() - self.began_s:5.0f} s  {what}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    if options.page:
        stored = json.loads((PLOTS / FIGURES).read_text(encoding="utf-8"))
        write_page(stored["machine"], AXES, read_figures(stored), PAGE, PLOTS)
        return 0
    clock = Clock(time.monotonic())
    machine = describe_machine()
    axes = [axis for axis in AXES if not options.only or axis.name in options.only]
    try:
        found = measure_axes(axes, clock, QUICK_MAX if options.quick else None)
        measured = {axis.name: collect(axis, found) for axis in axes}
        if not options.quick:
            add_profiles(axes, measured, clock)
    except NotMeasured as failure:
        print(f"bench.growth: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench.growth: interrupted, nothing is stored", file=sys.stderr)
        return 130
    is_whole = not (options.quick or options.only)
    page, plots = (PAGE, PLOTS) if is_whole else (UNPROVEN / "GROWTH.md", UNPROVEN / "growth")
    plots.mkdir(parents=True, exist_ok=True)
    figures = {"machine": machine, "series": figures_to_json(measured)}
    (plots / FIGURES).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    print(write_page(machine, axes, measured, page, plots))
    clock.note(f"stored in {page.relative_to(CHECKOUT)}")
    return 0


def write_page(
    machine: Json, axes: Sequence[Axis], measured: Measures, page: Path, plots: Path
) -> str:
    """Write the page and its plots; returns the page."""
    text = format_page(machine, axes, measured)
    page.write_text(text, encoding="utf-8")
    for axis in axes:
        for plot in make_plots(axis, measured[axis.name]):
            (plots / plot.file_name).write_text(draw_plot(axis, plot), encoding="utf-8")
    return text


def figures_to_json(measured: Measures) -> Json:
    """By axis and series: the points, with four digits, and the profile."""
    return {
        axis: {
            one.series.name: {
                "points": {str(n): float(f"{cost:.4g}") for n, cost in one.points.items()},
                "profile": list(one.profile),
            }
            for one in its
        }
        for axis, its in measured.items()
    }


def read_figures(stored: Json) -> dict[str, list[Measured]]:
    """What `figures_to_json` made."""
    measured: dict[str, list[Measured]] = {}
    for series in SERIES:
        figures = stored["series"][series.axis][series.name]
        points = {int(size): cost for size, cost in figures["points"].items()}
        one = Measured(series, points, tuple(figures["profile"]))
        measured.setdefault(series.axis, []).append(one)
    return measured


def measure_axes(axes: Sequence[Axis], clock: Clock, largest: int | None) -> Found:
    """Run a process for each size of each axis; axes that are measured together share it."""
    found: Found = {}
    sizes = {axis.process: axis.sizes for axis in axes}
    for process, its_sizes in sizes.items():
        for size in its_sizes:
            if largest is not None and size > largest:
                continue
            clock.note(f"{process}: {size:,}")
            for series, value in run_point(process, size).items():
                assert isinstance(value, float)
                found.setdefault(process, {}).setdefault(series, {})[size] = value
    return found


def run_point(process: str, size: int, *options: str) -> dict[str, object]:
    """The answer of `bench.growth.point`. Raises NotMeasured."""
    command = [sys.executable, "-m", "bench.growth.point", process, str(size), *options]
    try:
        done = subprocess.run(
            command,
            cwd=CHECKOUT,
            stdout=subprocess.PIPE,
            text=True,
            timeout=POINT_TIMEOUT_S,
            check=True,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise NotMeasured(f"{process} of size {size:,} failed: {error}") from error
    found: dict[str, object] = json.loads(done.stdout)
    for series, value in found.items():
        if isinstance(value, float) and not (isfinite(value) and value > 0):
            raise NotMeasured(f"{series} of {process} at {size:,} is {value}, not a cost")
    return found


def collect(axis: Axis, found: Found) -> list[Measured]:
    """The series of an axis, in their units."""
    measured = []
    for series in SERIES:
        if series.axis == axis.name:
            points = select_points(series, found[axis.process][series.name])
            divisor = 1000 if series.unit == CPU_MS else MIB_BYTES
            measured.append(Measured(series, {n: cost / divisor for n, cost in points.items()}))
    return measured


def add_profiles(axes: Sequence[Axis], measured: dict[str, list[Measured]], clock: Clock) -> None:
    """Profile the largest size of each series that is too steep."""
    for axis in axes:
        for one in measured[axis.name]:
            if one.is_too_steep:
                size, series = max(one.points), one.series.name
                clock.note(f"profile of {axis.name}, {series}: {size:,}")
                answer = run_point(axis.process, size, "--profile", series)
                lines = answer.get(series, [])
                assert isinstance(lines, list)
                one.profile = tuple(lines)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    names = [axis.name for axis in AXES]
    parser = argparse.ArgumentParser(prog="bench.growth", description="How costs grow with size.")
    parser.add_argument("--quick", action="store_true", help=f"no sizes above {QUICK_MAX:,}")
    parser.add_argument(
        "--page", action="store_true", help="measure nothing, write the page from the figures"
    )
    parser.add_argument("--only", nargs="+", choices=names, metavar="AXIS",
                        help="only these: " + ", ".join(names))  # fmt: skip
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
