"""Runs `tables`, `audit` and `report` on a simulated cluster, one after another.

python -m bench.pipeline.cluster --groups 10000 --days 30 --records 50000000
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.machine import describe_machine, share_cores
from bench.pipeline.processes import PeakMemory
from bench.pipeline.results_page import CLUSTER, update_results
from bench.pipeline.simulated_cluster import (
    END_OFFSETS,
    Cluster,
    Written,
    write_cluster,
)
from tests.groups import CHECKOUT

TIMES = 100
"""The projection is for this many times the measured size."""

_CORES = (16, 64, 256)
_HOUR_S = 3600
_LAST_LINES = 20
_MOST_SAID = 2_000


@dataclass(frozen=True, slots=True)
class Step:
    """A command on the whole log, including its start; ``error`` is its output if it failed."""

    name: str
    seconds: float
    cpu_s: float
    peak_mib: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """What was generated, what each command took up to the first failure, and its results."""

    cluster: Cluster
    written: Written
    generated_s: float
    steps: Sequence[Step]
    table_bytes: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)
    page_bytes: int = 0

    @property
    def error(self) -> str | None:
        """The output of the command that failed, if one did."""
        return next((step.error for step in self.steps if step.error is not None), None)


def run_cluster(folder: Path, cluster: Cluster, memory: str, cores: int) -> ClusterRun:
    """Generate the log of a cluster and run the commands, with this much memory for Spark's JVM.

    Reports progress on standard error. Commands after a failed one are not run; an audit that
    finds violations fails.
    """
    started = time.monotonic()
    _tell(f"making {cluster.records:,} records of {cluster.groups:,} groups")
    written = write_cluster(folder, cluster, cores)
    generated_s = time.monotonic() - started
    _tell(f"{written.records:,} records, {_show_bytes(written.bytes)}, in {generated_s:,.0f} s")
    log, tables, page = folder / "log", folder / "tables", folder / "report.html"
    ends = folder / END_OFFSETS
    master = ("--master", f"local[{cores}]")
    commands: list[tuple[str | Path, ...]] = [
        ("tables", "--path", log, "--out", tables, "--end-offsets", ends),
        ("audit", "--path", log),
        ("report", "--path", tables, "--out", page),
    ]
    steps: list[Step] = []
    for command in commands:
        step = _run(memory, [*map(str, command), *master], folder / "said")
        steps.append(step)
        _tell(
            f"{step.name}: {'failed' if step.error is not None else 'done'} after "
            f"{step.seconds:,.0f} s, {written.records / step.seconds:,.0f} records/s, "
            f"{step.cpu_s:,.0f} s of CPU, at most {step.peak_mib:,.0f} MiB"
        )
        if step.error is not None:
            break
    run = ClusterRun(cluster, written, generated_s, steps)
    manifest = tables / "_tables.json"
    if manifest.exists():
        rows = json.loads(manifest.read_text(encoding="utf-8"))["tables"]
        size = sum(file.stat().st_size for file in tables.rglob("*") if file.is_file())
        run = replace(run, rows=rows, table_bytes=size)
    return replace(run, page_bytes=page.stat().st_size) if page.exists() else run


def _run(memory: str, arguments: Sequence[str], said: Path) -> Step:
    """Run a command, and show its output while it runs."""
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--driver-memory {memory} pyspark-shell"}
    name, *_ = arguments
    started = time.monotonic()
    _tell(f"{name} begins")
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with PeakMemory() as used, said.open("wb") as output:
        with subprocess.Popen(
            [sys.executable, "-m", "cli", "pipeline", *arguments],
            cwd=CHECKOUT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process:
            assert process.stderr is not None
            for line in process.stderr:
                last.append(line)
                sys.stderr.write(f"  {line}")
        code = process.returncode
    seconds = time.monotonic() - started
    error = f"`{name}` exits with {code}: {''.join(last).strip()}" if code else None
    return Step(name, seconds, used.cpu_s, used.peak_mib, error)


def _tell(line: str) -> None:
    sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {line}\n")


def make_page(run: ClusterRun, machine: Mapping[str, object], cores: int, memory: str) -> str:
    """The figures and the projection, as Markdown."""
    records, cluster = run.written.records, run.cluster
    lines = [
        "# The pipeline: a simulated cluster",
        "",
        f"{machine['date']}, {machine['cpu']}, {cores} cores, load before the run "
        f"{machine['load_before']}. {cluster.groups:,} groups, {cluster.days:g} days, "
        f"{records:,} records, {_show_bytes(run.written.bytes)} of segments, seed {cluster.seed}, "
        f"generated in {run.generated_s:,.0f} s. Each command is a process of its own that starts "
        f"Spark (local[{cores}], {memory} for its JVM); memory is that of all its processes.",
        "",
        "| what | wall | records/s | CPU per record | peak memory |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    whole = Step(
        "all",
        sum(step.seconds for step in run.steps),
        sum(step.cpu_s for step in run.steps),
        max(step.peak_mib for step in run.steps),
    )
    lines += [_make_row(step, f"`{step.name}`", records) for step in run.steps]
    lines += [_make_row(whole, "all", records), ""]
    if run.error is not None:
        # The output may contain fences of its own, and is long if it comes from Java.
        said = run.error.replace("```", "~~~")[-_MOST_SAID:]
        lines += ["**FAILED**; the commands after it were not run.", "", "```", said, "```", ""]
    if run.rows:
        lines += [f"The tables take {_show_bytes(run.table_bytes)}. Rows: {_show_rows(run)}.", ""]
    if run.page_bytes:
        lines += [f"The audit found nothing. The page has {_show_bytes(run.page_bytes)}.", ""]
    return "\n".join([*lines, *_make_reckoning(run, whole.cpu_s)])


def _make_row(step: Step, name: str, records: int) -> str:
    failed = "" if step.error is None else " **failed**"
    return (
        f"| {name}{failed} | {step.seconds:,.0f} s | {records / step.seconds:,.0f} "
        f"| {step.cpu_s:,.0f} s | {step.cpu_s / records * 1e6:.1f} µs | {step.peak_mib:,.0f} MiB |"
    )


def _show_rows(run: ClusterRun) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in run.rows.items())


def _make_reckoning(run: ClusterRun, cpu_s: float) -> list[str]:
    records, cluster = run.written.records, run.cluster
    done = "" if run.error is None else " This only includes what was run, as far as it came."
    return [
        f"## {TIMES} times as much",
        "",
        f"{records * TIMES:,} records of {cluster.groups * TIMES:,} groups, "
        f"{_show_bytes(run.written.bytes * TIMES)} of segments and "
        f"{_show_bytes(run.table_bytes * TIMES)} of tables, projected from the CPU per record "
        "above. Tasks share nothing but shuffles by group, no task holds more than one group, and "
        f"the lists of the report have the same length.{done}",
        "",
        "| cores | hours |",
        "| --- | --- |",
        *(f"| {count} | {cpu_s * TIMES / count / _HOUR_S:.1f} |" for count in _CORES),
        "",
    ]


def _show_bytes(count: int) -> str:
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e3:.0f} kB"


def main(arguments: Sequence[str]) -> int:
    """Print the page and write it, also if a command fails, which returns 1."""
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline.cluster", description=__doc__)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--records", type=int, default=50_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", default="4g", help="memory of Spark's JVM")
    parser.add_argument("--page", type=Path, default=CLUSTER)
    parser.add_argument("--report", type=Path, help="where to keep the report")
    chosen = parser.parse_args(arguments)
    cores = share_cores()
    machine = describe_machine()
    cluster = Cluster(chosen.groups, chosen.days, chosen.records, chosen.seed)
    with TemporaryDirectory(prefix="muster-cluster-bench-") as folder:
        run = run_cluster(Path(folder), cluster, chosen.memory, cores)
        if chosen.report is not None and run.page_bytes:
            chosen.report.write_bytes((Path(folder) / "report.html").read_bytes())
    page = make_page(run, machine, cores, chosen.memory)
    print(page)
    chosen.page.write_text(page, encoding="utf-8")
    update_results(chosen.page)
    return int(run.error is not None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
