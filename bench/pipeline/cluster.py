"""A simulated cluster through `tables`, `audit` and `report`, one after another in one run.

python -m bench.pipeline.cluster --groups 10000 --days 30 --records 50000000
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.machine import describe_machine, share_cores
from bench.pipeline.processes import PeakMemory
from bench.pipeline.simulated_cluster import (
    END_OFFSETS,
    Cluster,
    Written,
    write_cluster,
)
from tests.groups import CHECKOUT

PAGE = Path(__file__).parent / "CLUSTER.md"
TIMES = 100
"""The reckoning is for so many times what was run."""

_CORES = (16, 64, 256)
_HOUR_S = 3600


class StepFailed(RuntimeError):
    """A command did not end well; the message has what it said last."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command over the whole log; start-up is in it."""

    name: str
    seconds: float
    cpu_s: float
    peak_mib: float


@dataclass(frozen=True, slots=True)
class ClusterRun:
    """What was made, what each command took, and what came out."""

    cluster: Cluster
    written: Written
    generated_s: float
    steps: Sequence[Step]
    table_bytes: int
    rows: dict[str, int]
    page_bytes: int


def run_cluster(folder: Path, cluster: Cluster, memory: str, cores: int) -> ClusterRun:
    """Makes the log of a cluster and runs the commands on it, with so much memory for Spark's JVM.

    Raises ``StepFailed`` where one fails, as an audit that finds something.
    """
    started = time.monotonic()
    written = write_cluster(folder, cluster, cores)
    generated_s = time.monotonic() - started
    log, tables, page = folder / "log", folder / "tables", folder / "report.html"
    ends = folder / END_OFFSETS
    master = ("--master", f"local[{cores}]")
    steps = [
        _run(memory, "tables", "--path", log, "--out", tables, "--end-offsets", ends, *master),
        _run(memory, "audit", "--path", log, *master),
        _run(memory, "report", "--path", tables, "--out", page, *master),
    ]
    manifest = json.loads((tables / "_tables.json").read_text(encoding="utf-8"))
    sizes = [file.stat().st_size for file in tables.rglob("*") if file.is_file()]
    page_bytes = page.stat().st_size
    return ClusterRun(
        cluster, written, generated_s, steps, sum(sizes), manifest["tables"], page_bytes
    )


def _run(memory: str, command: str, *arguments: str | Path) -> Step:
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--driver-memory {memory} pyspark-shell"}
    started = time.monotonic()
    with PeakMemory() as used:
        done = subprocess.run(
            [sys.executable, "-m", "cli", "pipeline", command, *map(str, arguments)],
            cwd=CHECKOUT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode:
        raise StepFailed(f"{command} exits with {done.returncode}: {done.stderr[-2000:]}")
    return Step(command, time.monotonic() - started, used.cpu_s, used.peak_mib)


def make_page(run: ClusterRun, machine: dict[str, object], cores: int, memory: str) -> str:
    """The figures and the reckoning, as Markdown."""
    records, cluster = run.written.records, run.cluster
    seconds, cpu_s = sum(s.seconds for s in run.steps), sum(s.cpu_s for s in run.steps)
    lines = [
        "# The pipeline: a simulated cluster",
        "",
        f"{machine['date']}, {machine['cpu']}, {cores} cores, load before the run "
        f"{machine['load_before']}. {cluster.groups:,} groups, {cluster.days:g} days, "
        f"{records:,} records, {_show_bytes(run.written.bytes)} of segments, seed {cluster.seed}, "
        f"made in {run.generated_s:,.0f} s. Each command is a process of its own with a start of "
        f"Spark (local[{cores}], {memory} for its JVM); memory is that of all its processes.",
        "",
        "| what | wall | records/s | CPU | CPU a record | peak memory |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for step in run.steps:
        lines.append(
            f"| `{step.name}` | {step.seconds:,.0f} s | {records / step.seconds:,.0f} "
            f"| {step.cpu_s:,.0f} s | {step.cpu_s / records * 1e6:.1f} µs "
            f"| {step.peak_mib:,.0f} MiB |"
        )
    lines += [
        f"| all | {seconds:,.0f} s | {records / seconds:,.0f} | {cpu_s:,.0f} s "
        f"| {cpu_s / records * 1e6:.1f} µs | {max(s.peak_mib for s in run.steps):,.0f} MiB |",
        "",
        f"The tables have {_show_bytes(run.table_bytes)}, the page "
        f"{_show_bytes(run.page_bytes)}; the audit found nothing. Rows: "
        + ", ".join(f"{name} {count:,}" for name, count in run.rows.items())
        + ".",
        "",
        f"## {TIMES} times as much",
        "",
        f"{records * TIMES:,} records of {cluster.groups * TIMES:,} groups, "
        f"{_show_bytes(run.written.bytes * TIMES)} of segments and "
        f"{_show_bytes(run.table_bytes * TIMES)} of tables, reckoned with the CPU a record from "
        "above. Tasks share nothing but shuffles by group, no task holds more than a group, and "
        "the lists of the report are as long as before.",
        "",
        "| cores | hours |",
        "| --- | --- |",
        *(f"| {count} | {cpu_s * TIMES / count / _HOUR_S:.1f} |" for count in _CORES),
        "",
    ]
    return "\n".join(lines)


def _show_bytes(count: int) -> str:
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e3:.0f} kB"


def main(arguments: Sequence[str]) -> int:
    """Prints the page and writes it; 1 where a command fails."""
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline.cluster", description=__doc__)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--records", type=int, default=50_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", default="4g", help="of Spark's JVM")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--report", type=Path, help="where the report is kept")
    chosen = parser.parse_args(arguments)
    cores = share_cores()
    machine = describe_machine()
    cluster = Cluster(chosen.groups, chosen.days, chosen.records, chosen.seed)
    with TemporaryDirectory(prefix="muster-cluster-bench-") as folder:
        try:
            run = run_cluster(Path(folder), cluster, chosen.memory, cores)
        except StepFailed as error:
            print(error, file=sys.stderr)
            return 1
        if chosen.report is not None:
            chosen.report.write_bytes((Path(folder) / "report.html").read_bytes())
    page = make_page(run, machine, cores, chosen.memory)
    print(page)
    chosen.page.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
