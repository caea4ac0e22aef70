"""The history of full runs in `results`: one small file a run; lists and compares them.

    python -m bench.history              the newest run with the newest earlier one like it
    python -m bench.history --list
    python -m bench.history BEFORE [AFTER]   each a commit, or the beginning of a file's name
    python -m bench.history --upstream ...   the same of the runs in front of a cluster

A file is named by UTC time and commit. It has median, minimum and maximum of both sides of every
row, and describes the machine without a host name or a path.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.comparison import (
    SMALL,
    UNKNOWN_NOISE,
    Change,
    Comparison,
    KeptRow,
    Spread,
    compare,
    keep_rows,
)
from bench.figures import Json, Section, format_value
from bench.report import write_atomically

FOLDER = Path(__file__).with_name("results")
UPSTREAM = Path(__file__).with_name("upstream") / "results"
SAME = ("cpu", "cores", "cores_used", "memory_gib", "kernel", "file_system")
"""What two descriptions of the same machine have in common. Disk and load vary by the hour."""

_DATE = "%Y-%m-%d %H:%M UTC"
_NAMES = "[0-9]*T[0-9]*Z-*.json"
_CHANGED = ", with changes"


class HistoryError(Exception):
    """A run that is not in the history, or a file that cannot be read; for the user."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: `failures` has a line for each scenario that failed."""

    commit: str
    machine: Json
    rows: tuple[KeptRow, ...]
    failures: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """UTC time and commit, such as `2030-01-02T0304Z-abc1234`: in the order of time."""
        moment = datetime.strptime(self.machine["date"], _DATE).replace(tzinfo=UTC)
        return f"{moment:%Y-%m-%dT%H%MZ}-{self.commit}"

    def to_json(self) -> str:
        """A line for each row, so that files are small and diffs are readable."""
        head = {"commit": self.commit, "machine": self.machine, "failures": list(self.failures)}
        text = json.dumps(head, indent=1, ensure_ascii=False).removesuffix("\n}")
        rows = (json.dumps(_row_to_json(row), ensure_ascii=False) for row in self.rows)
        return text + ',\n "rows": [\n  ' + ",\n  ".join(rows) + "\n ]\n}\n"


def _row_to_json(row: KeptRow) -> Json:
    return {
        "what": row.what,
        "unit": row.unit,
        "more_is_better": row.more_is_better,
        "kafka": _spread_to_json(row.kafka),
        "muster": _spread_to_json(row.muster),
    }


def _spread_to_json(spread: Spread) -> Json:
    values = {"median": spread.median, "min": spread.least, "max": spread.most}
    return {name: float(f"{value:.6g}") for name, value in values.items()}


def _read_spread(stored: Json) -> Spread:
    return Spread(stored["median"], stored["min"], stored["max"])


def make_run(machine: Json, sections: Sequence[Section]) -> Run:
    """What the history keeps of a run."""
    commit = find_commit(machine["versions"]["muster"])
    failed = tuple(f"{section.name}: {section.failure}" for section in sections if section.failure)
    return Run(commit, machine, keep_rows(sections), failed)


def find_commit(version: str) -> str:
    """The commit in a version such as `0.1.0 at abc1234, with changes`."""
    found = re.search(r" at (\w+)", version)
    commit = found.group(1) if found else "unknown"
    return f"{commit}-changed" if version.endswith(_CHANGED) else commit


def record(run: Run, folder: Path) -> Path:
    """Write the file of a run, atomically."""
    path = folder / f"{run.name}.json"
    write_atomically(path, run.to_json())
    return path


def read_history(folder: Path = FOLDER) -> list[Run]:
    """All runs, the oldest first. Raises HistoryError for a file that is not one."""
    return [read_run(path) for path in sorted(folder.glob(_NAMES))]


def read_run(path: Path) -> Run:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        rows = tuple(
            KeptRow(
                row["what"],
                row["unit"],
                _read_spread(row["kafka"]),
                _read_spread(row["muster"]),
                row["more_is_better"],
            )
            for row in stored["rows"]
        )
        run = Run(stored["commit"], stored["machine"], rows, tuple(stored["failures"]))
        # What is printed of every run is there.
        format_list([run])
        _format_versions(run.machine["versions"], {})
        return run
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HistoryError(f"{path.name} is not a run of the history: {error!r}") from error


def find_run(runs: Sequence[Run], wanted: str) -> Run:
    """The newest run with this commit; else the newest one whose commit or name begins so.

    Raises HistoryError.
    """
    exact = [run for run in runs if wanted in (run.commit, run.name)]
    for run in reversed(exact or runs):
        if run.name.startswith(wanted) or run.commit.startswith(wanted):
            return run
    raise HistoryError(f"no run {wanted!r} in the history; --list shows all")


def find_earlier(runs: Iterable[Run], run: Run) -> Run | None:
    """The newest earlier run on the same machine; if there is none, the newest earlier run."""
    earlier = sorted((other for other in runs if other.name < run.name), key=lambda one: one.name)
    same = [other for other in earlier if not find_differences(other.machine, run.machine)]
    candidates = same or earlier
    return candidates[-1] if candidates else None


def find_differences(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """How two descriptions of a machine differ; empty if it is the same machine."""
    return [
        f"{what} {before.get(what)} → {after.get(what)}"
        for what in SAME
        if before.get(what) != after.get(what)
    ]


def format_history(run: Run, runs: Iterable[Run]) -> str:
    """Compare a run with the newest earlier one, for a terminal."""
    before = find_earlier(runs, run)
    if before is None:
        return f"{run.name} is compared with nothing: the history has no earlier run."
    return format_runs(before, run)


def format_runs(before: Run, after: Run) -> str:
    """Compare two runs, for a terminal."""
    differences = find_differences(before.machine, after.machine)
    found = compare(before.rows, after.rows, is_same_machine=not differences)
    lines = [f"{before.name} → {after.name}"]
    if differences:
        lines.append(
            f"another machine: {'; '.join(differences)}. Only ratios to Kafka are compared."
        )
    lines.append(f"fdatasync {_format_fsync(before)} → {_format_fsync(after)}")
    lines += _format_versions(before.machine["versions"], after.machine["versions"])
    lines += [*_format_changes(found), *_format_missing(found)]
    lines += [f"failed before: {line}" for line in before.failures]
    lines += [f"failed now: {line}" for line in after.failures]
    return "\n".join(lines)


def format_list(runs: Iterable[Run]) -> str:
    """A line for each run."""
    return "\n".join(
        f"{run.name}  {len(run.rows)} rows, {run.machine['cpu']}, {run.machine['cores']} cores, "
        f"{run.machine['kernel']}, fdatasync {_format_fsync(run)}"
        for run in runs
    )


def _format_changes(found: Comparison) -> list[str]:
    if not found.changes:
        return [f"none of {found.compared} rows changed by more than the noise"]
    lines = [
        f"changed by more than the noise, of {found.compared} rows (ranges apart, medians by more "
        f"than {SMALL:.0%}; * by more than {UNKNOWN_NOISE:.0%}, without a range):"
    ]
    return lines + [_format_change(change) for change in found.changes]


def _format_change(change: Change) -> str:
    before, after = (_format_spread(side, change.unit) for side in (change.before, change.after))
    verdict = "better" if change.is_better else "worse"
    mark = "" if change.has_ranges else " *"
    subject = "Muster / Kafka" if change.unit == "×" else "Muster"
    return f"  {verdict:6}  {change.what}: {subject} {before} → {after}{mark}"


def _format_spread(spread: Spread, unit: str) -> str:
    text = _format_number(spread.median, unit)
    if not spread.has_range:
        return text
    return f"{text} ({_format_number(spread.least, '')} – {_format_number(spread.most, '')})"


def _format_number(value: float, unit: str) -> str:
    """Small ratios need more than two decimals."""
    if 0 < abs(value) < 0.1:
        return f"{value:.2g} {unit}".strip()
    return format_value(value, unit).strip()


def _format_missing(found: Comparison) -> list[str]:
    gone = [f"no longer measured: {what}" for what in found.only_before]
    return gone + [f"not measured before: {what}" for what in found.only_after]


def _format_versions(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    changed = [
        f"{name} {before.get(name)} → {after.get(name)}"
        for name in sorted({*before, *after} - {"muster"})
        if before.get(name) != after.get(name)
    ]
    return [f"other versions: {', '.join(changed)}"] if changed else []


def _format_fsync(run: Run) -> str:
    return f"{run.machine['fsync_ms']['p50']} ms"


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    try:
        runs = read_history(UPSTREAM if options.upstream else FOLDER)
        if options.list:
            print(format_list(runs))
            return 0
        if not runs:
            raise HistoryError("the history is empty; `make bench` records a run")
        after = find_run(runs, options.after) if options.after else runs[-1]
        if options.before is None:
            print(format_history(after, runs))
        else:
            before = find_run(runs, options.before)
            if before is after:
                raise HistoryError(
                    f"{options.before!r} is {after.name}, which would be compared with itself"
                )
            print(format_runs(before, after))
    except HistoryError as error:
        print(f"bench.history: {error}", file=sys.stderr)
        return 1
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench.history", description="Compares two runs of the benchmark."
    )
    parser.add_argument("--list", action="store_true", help="list the runs, and compare nothing")
    parser.add_argument("--upstream", action="store_true", help="runs in front of a cluster")
    parser.add_argument("before", nargs="?", help="a commit, or the beginning of a file's name; "
                        "otherwise the newest earlier run on the same machine")  # fmt: skip
    parser.add_argument("after", nargs="?", help="otherwise the newest run")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
