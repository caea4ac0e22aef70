"""Starts on large stores: Muster after SIGKILL, and Kafka loading the same log."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from bench.figures import Json, Row, Section, Target, pick
from bench.peer import run_kload
from bench.stand import Stand
from tests.kafka.broker import SERVER_JVM_OPTIONS, KafkaBroker
from tests.kafka.jars import CHECKOUT
from tests.server import MusterServer
from tests.support.waiting import wait_until_answered

HISTORY_FACTOR = 10
OFFSETS_MS = 1000
MEMBERS_MS = 8000
LOG_PARTITIONS = 50
MAKE_TIMEOUT_S = 600.0
LOAD_TIMEOUT_S = 180.0
LOADING_LEVEL = "-Dkafka.runtime.level=info"
_POLL_S = 0.1
_LINE = re.compile(
    r"^\[([\d-]+ [\d:,]+)\] .*? (Scheduling|Finished) loading of metadata from", re.M
)
_OWN_FILES = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


def measure_recovery(stand: Stand) -> Section:
    """Time to be ready after a kill, with long histories, many offsets and many members."""
    plan = stand.plan
    history = plan.recovery_records
    long_history = history * HISTORY_FACTOR
    groups, members = plan.recovery_offset_groups, plan.recovery_members
    commits = f"{history:,} commits of 10 groups"
    runs = {
        commits: measure_store(stand, commits, ("commits", "--records", str(history))),
    }
    name = f"{long_history:,} commits of 10 groups (Kafka: {history:,})"
    long_runs = measure_store(
        stand, name, ("commits", "--records", str(long_history)), with_kafka=False
    )
    runs[name] = {**long_runs, "Kafka": runs[commits]["Kafka"]}
    name = f"{groups * 100:,} live offsets in {groups:,} groups"
    runs[name] = measure_store(stand, name, ("offsets", "--groups", str(groups)))
    with_members = f"{members:,} members, {members * 3:,} records"
    runs[with_members] = measure_store(stand, with_members, ("members", "--members", str(members)))
    rows = [
        row
        for name, sides in runs.items()
        for row in make_rows(name, sides, MEMBERS_MS if name == with_members else OFFSETS_MS)
    ]
    return Section(
        name="recovery",
        title="Start after a kill",
        method=(
            "A store is generated as traffic would have left it, by a process that ends without "
            "closing it. Loading time: for Muster from opening the store, which replays RocksDB's "
            "log, until every group is served; for Kafka from the first to the last line of its "
            "log about loading the same batches, which `muster log export --history` wrote into "
            "the broker's folders. Muster was killed by SIGKILL; Kafka was shut down cleanly, "
            "because after a kill it first waits for its old session. Only the second figure "
            "includes the start of Python or the JVM. Kafka, which reads all of it, does not get "
            "the longest history."
        ),
        rows=tuple(rows),
        runs={
            f"{side}, {name}": reports
            for name, sides in runs.items()
            for side, reports in sides.items()
        },
    )


def make_rows(name: str, sides: dict[str, list[Json]], target_ms: float) -> tuple[Row, ...]:
    """Loading time, and the whole start."""
    kafka, muster = sides["Kafka"], sides["Muster"]

    def row(of: str, path: str, target: Target | None) -> Row:
        return Row(f"{name}: {of}", "ms", pick(kafka, path), pick(muster, path), target)

    return (
        row("loading", "load_ms", Target(max_value=target_ms)),
        row("from the start of the process", "ready_ms", None),
    )


def measure_store(
    stand: Stand, what: str, arguments: Sequence[str], *, with_kafka: bool = True
) -> dict[str, list[Json]]:
    """Generate a store and start both sides on it in turns."""
    with scratch_folder() as folder:
        data = folder / "data"
        data.mkdir()
        stand.note(f"making a store: {what}")
        make_store(data / "store", arguments)
        server = MusterServer(data)
        # The first start also searches the offsets of topics whose records a reboot may have lost.
        start_muster(server)
        sides: dict[str, Callable[[], Json]] = {"Muster": lambda: start_muster(server)}
        if not with_kafka:
            return stand.interleave(sides, runs=stand.plan.recovery_runs)
        segments = folder / "segments"
        export(data, segments)
        with loaded_broker(segments) as broker:
            sides = {"Kafka": lambda: start_kafka_again(broker), **sides}
            return stand.interleave(sides, runs=stand.plan.recovery_runs)


def make_store(store: Path, arguments: Sequence[str]) -> None:
    """Generate the store in a process that ends without closing it."""
    kind, *options = arguments
    subprocess.run(
        [sys.executable, "-m", "bench.stores", kind, str(store), *options],
        cwd=CHECKOUT,
        check=True,
        timeout=MAKE_TIMEOUT_S,
        stdout=subprocess.DEVNULL,
    )


def export(data: Path, segments: Path) -> None:
    command = [sys.executable, "-m", "cli", "log", "export", str(segments)]
    subprocess.run(
        [*command, "--data-dir", str(data), "--history", "--quiet"],
        cwd=CHECKOUT,
        check=True,
        timeout=MAKE_TIMEOUT_S,
        stdout=subprocess.DEVNULL,
    )


def start_muster(server: MusterServer) -> Json:
    """Start the server, and kill it when it is ready."""
    began_at = time.monotonic()
    server.start()
    ready_ms = (time.monotonic() - began_at) * 1000
    try:
        started = [json.loads(line) for line in server.output().splitlines() if '"started"' in line]
    finally:
        server.kill()
    last = started[-1]
    return {
        "ready_ms": ready_ms,
        "load_ms": last["start_seconds"] * 1000,
        "group_load_ms": last["load_seconds"] * 1000,
        "records": last["records"],
    }


@contextmanager
def loaded_broker(segments: Path) -> Iterator[KafkaBroker]:
    """A stopped broker whose offsets topic is the content of ``segments``."""
    settings = {"log.cleaner.enable": False}
    broker = KafkaBroker(settings, jvm=SERVER_JVM_OPTIONS, jvm_options=(LOADING_LEVEL,))
    try:
        broker.start()
        run_kload("commits", broker.bootstrap, seconds=0.5)
        broker.stop()
        for folder in broker.log_dir.glob("__consumer_offsets-*"):
            for file in folder.iterdir():
                if file.suffix in _OWN_FILES:
                    file.unlink()
            (folder / "leader-epoch-checkpoint").unlink(missing_ok=True)
            for file in (segments / folder.name).glob("*.log"):
                shutil.copy(file, folder / file.name)
        # The first start builds the indexes of the new segments.
        broker.start()
        wait_until_loaded(broker)
        broker.stop()
        yield broker
    finally:
        broker.close()


def start_kafka_again(broker: KafkaBroker) -> Json:
    """Start the broker, wait until it has loaded everything, and stop it."""
    began_at = time.monotonic()
    broker.start()
    load_ms = wait_until_loaded(broker)
    ready_ms = (time.monotonic() - began_at) * 1000
    broker.stop()
    return {"ready_ms": ready_ms, "load_ms": load_ms}


def wait_until_loaded(broker: KafkaBroker) -> float:
    """Milliseconds from the first line about loading to the last. Raises ``NotInTime``."""
    found = wait_until_answered(
        lambda: _LINE.findall(broker.read_log()),
        lambda lines: sum(word == "Finished" for _, word in lines) >= LOG_PARTITIONS,
        "Kafka has loaded its groups",
        LOAD_TIMEOUT_S,
        between=lambda: time.sleep(_POLL_S),
    )
    times = [datetime.strptime(when, "%Y-%m-%d %H:%M:%S,%f") for when, _ in found]
    return (max(times) - min(times)).total_seconds() * 1000


@contextmanager
def scratch_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="muster-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
