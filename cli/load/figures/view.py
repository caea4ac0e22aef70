"""What a load test shows while it runs, and at its end."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.live import Live
from rich.table import Table

from cli.load.figures.figures import Figures, compute_ms
from cli.load.options.expectations import LATENCIES
from cli.load.options.plan import Plan, Workload

_ROWS_MAX: Final = 12
_COLUMNS: Final = ("TIME", "RATE", "P50", "P99", "P999", "MAX", "ERRORS", "JOINS", "CONVERGED")
_ERRORS_SHOWN: Final = 3


class View:
    """Prints a line each second; on a terminal a table of the last ones."""

    def __init__(self, *, is_quiet: bool) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._is_quiet = is_quiet
        self._rows: list[list[str]] = []
        self._live: Live | None = None
        self._has_header = False

    def start(self) -> None:
        """Show the table, if there is a terminal."""
        if self._console.is_terminal and not self._is_quiet:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()

    def stop(self) -> None:
        """Leave the table as it is."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def say(self, text: str) -> None:
        """Print a line."""
        if not self._is_quiet:
            self._console.print(text, markup=False)

    def show(self, moment: str, figures: Figures, seconds: float) -> None:
        """Show the figures of the last ``seconds``."""
        if self._is_quiet:
            return
        row = compute_row(moment, figures, seconds)
        if self._live is not None:
            self._rows = [*self._rows, row][-_ROWS_MAX:]
            self._live.update(_make_table(self._rows), refresh=True)
            return
        if not self._has_header:
            self._has_header = True
            self._console.print(_format_row(list(_COLUMNS)), markup=False)
        self._console.print(_format_row(row), markup=False)


def compute_row(moment: str, figures: Figures, seconds: float) -> list[str]:
    """The columns of one second; durations are in ms."""
    latency = compute_ms(figures.latency)
    converged = figures.convergence.quantile(0.5)
    return [
        moment,
        f"{figures.answered / seconds:.0f}" if seconds > 0 else "-",
        *(format_ms(latency[name]) for name in ("p50", "p99", "p999", "max")),
        format_errors(figures),
        str(figures.convergence.count or "-"),
        format_ms(None if converged is None else converged / 1e6),
    ]


def format_errors(figures: Figures) -> str:
    """The most frequent errors with their counts."""
    if not figures.errors:
        return "-"
    shown = [f"{name}={count}" for name, count in figures.errors.most_common(_ERRORS_SHOWN)]
    return " ".join(shown) + (" ..." if len(figures.errors) > _ERRORS_SHOWN else "")


def format_ms(value: float | None) -> str:
    """A duration in ms, with three digits."""
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def compute_summary(plan: Plan, figures: Figures, seconds: float) -> list[str]:
    """The result for people, one line each."""
    what = "requests" if plan.workload is Workload.IDLE else str(plan.workload)
    rate = figures.answered / seconds if seconds > 0 else 0.0
    lines = []
    if plan.workload is not Workload.IDLE:
        held = f", {plan.rate:g} were asked for" if plan.rate else ""
        lines.append(f"{figures.answered} {what} in {seconds:.1f} s: {rate:.0f} a second{held}")
        if plan.rate:
            lines.append(f"latency from the intended time  {_format_quantiles(figures, 'latency')}")
        lines.append(f"service time, from the sending  {_format_quantiles(figures, 'service')}")
    if figures.convergence.count:
        quantiles = _format_quantiles(figures, "convergence")
        lines.append(f"convergence of {figures.convergence.count} joins  {quantiles}")
    errors = [f"{name} {count}" for name, count in figures.errors.most_common()]
    lines.append(f"errors: {', '.join(errors) or 'none'}")
    return lines


def compute_limit_note(figures: Figures, seconds: float, processes: int) -> str | None:
    """Say so where the generator itself was at its limit."""
    used = figures.busy_s / (seconds * processes) if seconds > 0 else 0.0
    if used < _BUSY:
        return None
    return (
        f"the load test used {used:.0%} of a core in each of its {processes} processes: "
        "it may be what limits the rate; see docs/load.md"
    )


_BUSY: Final = 0.85


def _format_quantiles(figures: Figures, name: str) -> str:
    found = compute_ms(getattr(figures, name))
    return "  ".join(f"{key} {format_ms(found[key])}" for key in LATENCIES) + " ms"


def _format_row(cells: list[str]) -> str:
    widths = (7, 8, 8, 8, 8, 8)
    shown = [cell.rjust(width) for cell, width in zip(cells[:6], widths, strict=True)]
    return "  ".join([*shown, cells[7].rjust(5), cells[8].rjust(9), cells[6]])


def _make_table(rows: list[list[str]]) -> Table:
    table = Table(expand=False)
    for name in _COLUMNS:
        table.add_column(name, justify="left" if name == "ERRORS" else "right")
    for row in rows:
        table.add_row(*row)
    return table
