"""Muster's and Kafka's assignors, each in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from bench.figures import Json, Row, Section, Target
from bench.peer import Load
from bench.stand import BadRun, Stand
from tests.kafka.broker import LOG_CONFIG
from tests.kafka.jars import class_path, ensure_jars
from tests.kafka.java import compile_java
from tests.kafka.prerequisites import check_java

SOURCES = Path(__file__).parents[1] / "assignors"
HEAP = "2g"

TARGETS = {
    ("uniform", "homogeneous", 10_000, "full"): 1.5,
    ("uniform", "homogeneous", 10_000, "one joins"): 1.0,
    ("range", "homogeneous", 10_000, "full"): 5.0,
    ("range", "homogeneous", 10_000, "one joins"): 5.0,
    ("uniform", "buckets", 1_000, "full"): 8.0,
    ("uniform", "buckets", 1_000, "one joins"): 5.0,
    ("uniform", "overlapping", 1_000, "full"): 8.0,
    ("uniform", "overlapping", 1_000, "one joins"): 5.0,
}
"""Milliseconds, by assignor, subscriptions, members and case."""


def measure_assignors(stand: Stand) -> Section:
    """Both sides assign the groups of `bench.assignors.muster_assignors`."""
    runs = stand.interleave(
        {"Kafka": lambda: time_kafka(stand), "Muster": lambda: time_muster(stand)}, runs=1
    )
    return Section(
        name="assignors",
        title="Assignors",
        method=(
            "The assignor alone, called repeatedly on a prepared group, in a process of its "
            "own; medians of all calls of one run. `full` assigns to members that own "
            "nothing; `one joins` is the same group with a last member that owns nothing yet. "
            "Mixed subscriptions: in `buckets` members and topics are split into five parts, in "
            "`overlapping` each member subscribes to a random fifth of the topics."
        ),
        rows=make_rows(runs["Kafka"][0], runs["Muster"][0]),
        runs=runs,
    )


def time_kafka(stand: Stand) -> Json:
    plan = stand.plan
    classes = f"{compile_java(SOURCES)}:{class_path(ensure_jars())}"
    jvm = [check_java(), f"-Xms{HEAP}", f"-Xmx{HEAP}", f"-Dlog4j2.configurationFile={LOG_CONFIG}"]
    times = [str(plan.assignor_warm_up_s), str(plan.assignor_s)]
    return run(stand, [*jvm, "-cp", classes, "KafkaAssignors", *times])


def time_muster(stand: Stand) -> Json:
    program = [sys.executable, "-m", "bench.assignors.muster_assignors"]
    return run(stand, [*program, f"--seconds={stand.plan.assignor_s}"])


def run(stand: Stand, command: list[str]) -> Json:
    with Load(command) as load:
        return load.read_report(stand.timeout_s)


def make_rows(kafka: Json, muster: Json) -> tuple[Row, ...]:
    """A row for each group and case. Raises BadRun if the two sides differ in group or result."""
    rows = []
    for theirs, ours in zip(kafka["rows"], muster["rows"], strict=True):
        assignor, members, case = ours["assignor"], ours["members"], ours["case"]
        key = (assignor, ours["subscriptions"], members, case)
        if key != (
            theirs["assignor"], theirs["subscriptions"], theirs["members"], theirs["case"]
        ) or theirs["assigned"] != ours["assigned"]:  # fmt: skip
            raise BadRun(f"the assignors were given different groups: {theirs} {ours}")
        subscriptions = "" if key[1] == "homogeneous" else f", {key[1]}"
        limit = TARGETS.get(key)
        rows.append(
            Row(
                f"{assignor}, {members:,} × {ours['partitions']:,}{subscriptions}: {case}",
                "ms",
                (theirs["median_ms"],),
                (ours["median_ms"],),
                None if limit is None else Target(max_value=limit),
            )
        )
    return tuple(rows)
