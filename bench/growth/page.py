"""The page with all slopes, and its plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.figures import Json
from bench.growth.series import CPU_MS, LAST_TOLERANCE, MIB, TOLERANCE, Axis, Measured, find_steep
from bench.log_plot import Curve, draw

_INTRODUCTION = """\
# How costs grow with size

{date}; Muster {muster}. `make bench-growth` measures this and writes this page and its plots
([README.md](README.md)).

Each size is measured in a new process on a store that has all of it. Gateway, coordinator and the
RocksDB store are the real ones, on an event loop without sockets; only starts are those of a real
server. A figure is the least CPU time (user and system, all threads) of some rounds, so that other
load on the machine hardly matters. Requests come one after another, unless the text says otherwise:
each that writes has a write and an fsync of its own, some 0.5 ms of CPU that concurrent requests
share. Sizes go from 10 to 100,000, or up to a limit of the product.

`slope` is the exponent with which the cost grows, that of the least-squares line through the
logarithms of all points: 0 is a constant cost, 1 a cost in proportion to the size, 2 one with its
square. `last decade` is the slope of the largest sizes alone, because a constant part hides growth
at small ones. A cost is too steep if `slope` exceeds the expected one by more than {tolerance}, or
`last decade`, which has fewer points, by more than {last_tolerance}. The plots have both slopes
beside the names of the series.
"""


@dataclass(frozen=True, slots=True)
class Plot:
    """An SVG: its file name, and the series in it, which have the same unit."""

    file_name: str
    unit: str
    measured: tuple[Measured, ...]


def format_page(
    machine: Json, axes: Sequence[Axis], measured: Mapping[str, Sequence[Measured]]
) -> str:
    """The complete page; `measured` has the series of each axis by its name."""
    every = [one for axis in axes for one in measured[axis.name]]
    parts = [
        _INTRODUCTION.format(
            date=machine["date"],
            muster=machine["versions"]["muster"],
            tolerance=TOLERANCE,
            last_tolerance=LAST_TOLERANCE,
        ),
        "## The machine\n\n" + format_machine(machine) + "\n",
        "## Steeper than expected\n\n" + format_steep(find_steep(every)) + "\n",
    ]
    parts += [format_axis(axis, measured[axis.name]) for axis in axes]
    return "\n".join(parts)


def format_machine(machine: Json) -> str:
    """One paragraph about the machine."""
    versions = machine["versions"]
    names = ("python", "numpy", "rocksdict", "crc32c", "kio")
    fsync = machine["fsync_ms"]
    return (
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB of memory, "
        f"{machine['kernel']}, {machine['file_system']}; fdatasync of an append of 4 KiB: median "
        f"{fsync['p50']} ms; load average before the run: {machine['load_before']}; "
        + ", ".join(f"{name} {versions[name]}" for name in names)
        + "."
    )


def format_steep(steep: Sequence[Measured]) -> str:
    """The series that grow faster than expected, with where their time goes."""
    if not steep:
        return "Nothing in this run."
    lines = []
    for one in steep:
        series = one.series
        lines.append(
            f"- {series.axis}, {series.title}: slope {one.slope:.2f}, in the last decade "
            f"{one.last_slope:.2f}, expected {series.expected:g}; "
            f"{format_cost(one.points[max(one.points)], series.unit)} at {max(one.points):,}."
        )
        if one.profile:
            lines.append(f"  Most time of their own there: {', '.join(one.profile)}.")
    return "\n".join(lines)


def format_axis(axis: Axis, measured: Sequence[Measured]) -> str:
    """Table, plots and texts of one axis."""
    sizes = sorted({size for one in measured for size in one.points})
    head = ["", *(f"{size:,}" for size in sizes), "slope", "last decade", "expected", ""]
    lines = [_format_line(head), _format_line(["---", *["--:"] * (len(sizes) + 3), "---"])]
    lines += [_format_line(_make_cells(one, sizes)) for one in measured]
    plots = [f"![{axis.name}](growth/{plot.file_name})" for plot in make_plots(axis, measured)]
    return "\n".join(
        [
            f"## By {axis.name}\n",
            f"{axis.text}\n",
            *lines,
            "",
            *plots,
            "",
            *(_format_text(one) for one in measured),
            "",
        ]
    )


def make_plots(axis: Axis, measured: Sequence[Measured]) -> list[Plot]:
    """A plot for each unit of the axis."""
    plots = []
    for unit, suffix in ((CPU_MS, ""), (MIB, "-memory")):
        same = tuple(one for one in measured if one.series.unit == unit)
        if same:
            plots.append(Plot(f"{axis.file_name}{suffix}.svg", unit, same))
    return plots


def draw_plot(axis: Axis, plot: Plot) -> str:
    quantity = "CPU time" if plot.unit == CPU_MS else "Memory"
    return draw(
        [Curve(_shorten(one), one.points) for one in plot.measured],
        title=f"{quantity} by {axis.label}",
        label=axis.label,
        unit=plot.unit,
    )


def format_cost(value: float, unit: str) -> str:
    """Three significant digits; milliseconds as µs, ms or s."""
    if unit == CPU_MS:
        if value < 1:
            value, unit = value * 1000, "µs"
        elif value >= 1000:
            value, unit = value / 1000, "s"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def _shorten(one: Measured) -> str:
    return f"{one.series.name}: {one.slope:.2f} ({one.last_slope:.2f})"


def _make_cells(one: Measured, sizes: Sequence[int]) -> list[str]:
    series = one.series
    costs = [format_cost(one.points[n], series.unit) if n in one.points else "–" for n in sizes]
    slopes = [f"{one.slope:.2f}", f"{one.last_slope:.2f}", f"{series.expected:g}"]
    return [series.title, *costs, *slopes, "**too steep**" if one.is_too_steep else "as expected"]


def _format_text(one: Measured) -> str:
    series = one.series
    text = f"- **{series.title}** (`{series.name}`): {series.text}"
    if series.limit is not None:
        text += f" Ends at {series.limit:,}: {series.limit_reason}."
    return text


def _format_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
