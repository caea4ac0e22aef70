"""Formats the results of a run: as a table on the terminal, as Markdown and as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.figures import Json, Row, Section, format_value
from bench.pipeline.results_page import include_pages
from bench.plan import Plan
from bench.reasons import find_reason

_RATIO_WIDTH = 20
_INTRODUCTION = """\
# Muster beside Kafka {kafka}

{date}; Muster {muster}. `make bench` measures this and writes this page. The figures of
every run are in [results/latest.json](results/latest.json); [README.md](README.md) describes the
method. The targets are the project's own.

Both servers run with their defaults on the same machine, on loopback. The same generator drives
them over the Kafka protocol in turns (Kafka, Muster, Kafka, Muster, …); each figure is the median
of the runs. Kafka is one KRaft node with a heap of 1 GiB, warmed up for 10 s by requests of every
kind, with an assignment interval of 0, so that a change waits for nothing; Muster's is by the
group's size. CPU is the user and system time of all threads of the server.
"""


def write_results(
    plan: Plan, machine: Json, sections: Sequence[Section], results: Path, page: Path | None
) -> None:
    """Store the JSON, and the page if there is one, each atomically."""
    stored = {
        "plan": plan.name,
        "machine": machine,
        "scenarios": [section.to_json() for section in sections],
    }
    write_atomically(results, json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
    if page is not None:
        write_atomically(page, include_pages(format_page(machine, sections)))


def format_page(machine: Json, sections: Sequence[Section]) -> str:
    """The complete page."""
    versions = machine["versions"]
    parts = [
        _INTRODUCTION.format(
            kafka=versions["kafka"], muster=versions["muster"], date=machine["date"]
        ),
        "## The machine\n\n" + "\n".join(f"- {line}" for line in format_machine(machine)) + "\n",
        "## Where Muster is behind\n\n" + format_behind(sections) + "\n",
    ]
    parts += [format_section(section) for section in sections]
    return "\n".join(parts)


def format_machine(machine: Json) -> list[str]:
    """Lines about the machine and the versions."""
    versions = machine["versions"]
    used, cores = machine["cores_used"], machine["cores"]
    if used == cores:
        placing = "no process is pinned"
    else:
        placing = f"all processes are kept on the same {used} of them"
    others = ("python", "numpy", "uvloop", "rocksdict", "kio", "grpcio", "protobuf")
    fsync = machine["fsync_ms"]
    lines = [
        f"{machine['cpu']}, {cores} cores, which generator and servers share; {placing}",
        f"{machine['memory_gib']} GiB of memory, {machine['kernel']}",
        f"disk: {machine['file_system']}; fdatasync of an append of 4 KiB: median "
        f"{fsync['p50']} ms, p99 {fsync['p99']} ms",
        f"load average before the run: {machine['load_before']}",
        f"Java {versions['java']}, Go {versions['go']}, "
        + ", ".join(f"{name} {versions[name]}" for name in others),
    ]
    if machine["file_system"] in ("tmpfs", "ramfs"):
        lines.append("**the folder is in memory, so fsync costs nothing: not a fair figure**")
    return lines


def format_behind(sections: Sequence[Section]) -> str:
    """All missed targets, and all rows in which Muster is worse than Kafka."""
    lines = [f"- {section.title}: {section.failure}" for section in sections if section.failure]
    for other, row in ((section.sides[0], row) for section in sections for row in section.rows):
        what = f"- {row.what}: {_format_side(row.muster, row.unit)}"
        if row.is_reached is False:
            assert row.target is not None
            what += f", the target is {row.target.describe(row.unit)}"
            what += f" ({other}: {_format_side(row.kafka, row.unit)})"
        elif row.is_behind:
            reached = ", though the target is reached" if row.is_reached else ""
            what += f", {other} {_format_side(row.kafka, row.unit)}{reached}"
        else:
            continue
        reason = find_reason(row.what)
        lines.append(what if reason is None else f"{what}. Reason: {reason}.")
    return "\n".join(lines) if lines else "Nowhere in this run."


def format_section(section: Section) -> str:
    """Method and table of one scenario."""
    text = f"## {section.title}\n\n{section.method}\n"
    if section.failure:
        return f"{text}\n**{section.failure}**\n"
    counts = ", ".join(f"{side} {len(reports)}" for side, reports in (section.runs or {}).items())
    text += f"\nRuns: {counts}.\n"
    lines = [_format_line(make_header(section)), _format_line(["---"] + ["--:"] * 3 + ["---"] * 2)]
    lines += [_format_line(cells) for cells in make_cells(section.rows)]
    return text + "\n" + "\n".join(lines) + "\n"


def make_header(section: Section) -> tuple[str, ...]:
    """The heads of the columns that `make_cells` fills."""
    one, other = section.sides
    ratio = f"{other} / {one}"
    return ("", one, other, ratio if len(ratio) <= _RATIO_WIDTH else "ratio", "target", "reached")


def make_cells(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """The cells of a table: medians, with minimum and maximum if there are several values."""
    cells: list[tuple[str, ...]] = []
    for row in rows:
        ratio = "–" if row.ratio is None else f"{row.ratio:.2f} ×"
        target = "–" if row.target is None else row.target.describe(row.unit)
        reached = {None: "–", True: "yes", False: "**no**"}[row.is_reached]
        cells.append(
            (
                row.what,
                _format_values(row.kafka, row.unit),
                _format_values(row.muster, row.unit),
                ratio,
                target,
                reached,
            )
        )
    return cells


def format_terminal(sections: Sequence[Section]) -> str:
    """The same tables for a terminal, with aligned columns."""
    tables = {section.name: make_cells(section.rows) for section in sections}
    all_cells = [
        *map(make_header, sections),
        *(cells for table in tables.values() for cells in table),
    ]
    widths = [max(map(len, column)) for column in zip(*all_cells, strict=True)]
    lines = []
    for section in sections:
        lines += ["", section.title]
        if section.failure:
            lines.append(f"  {section.failure}")
        header = make_header(section)
        for cells in (header, *tables[section.name]) if tables[section.name] else ():
            padded = [
                cell.rjust(width) if 1 <= column <= 3 else cell.ljust(width)
                for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
            ]
            lines.append("  ".join(padded).replace("**", "").rstrip())
    return "\n".join(lines)


def _format_side(values: Sequence[float], unit: str) -> str:
    return _format_values(values, unit).split(" (")[0]


def _format_values(values: Sequence[float], unit: str) -> str:
    ordered = sorted(values)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    text = format_value(median, unit)
    if len(ordered) == 1:
        return text
    least, most = (format_value(value, "").strip() for value in (ordered[0], ordered[-1]))
    return f"{text} ({least} – {most})"


def _format_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def write_atomically(path: Path, text: str) -> None:
    """Write a file and its folder; nobody reads half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
