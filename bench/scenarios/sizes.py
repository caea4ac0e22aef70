"""Large groups: very many members, very many groups, a topic that grows a lot."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from bench.crowds import TOPIC, start_wire_crowd
from bench.figures import Json, Row, Section, Target, flatten, pick
from bench.scenarios.memory import PARTITIONS
from bench.scenarios.memory import TOPIC as GROUPS_TOPIC
from bench.stand import Server, Stand, check_report, describe
from tests.server import MusterServer

GROW_MEMBERS = 10
GROW_FROM = 100
GROW_BY = 900
MEMBERS_PER_GROUP = 10
KAFKA, MUSTER = "Kafka", "Muster"
LARGE = "Muster, one large group"


def measure_sizes(stand: Stand) -> Section:
    """A topic that grows, many small groups, and one large group."""
    plan = stand.plan
    kafka, muster = stand.kafka, stand.muster
    runs = stand.interleave(
        {
            f"{KAFKA}, growth": lambda: grow(stand, kafka),
            f"{MUSTER}, growth": lambda: grow(stand, muster),
            f"{KAFKA}, groups": lambda: settle(stand, kafka),
            f"{MUSTER}, groups": lambda: settle(stand, muster),
            f"{KAFKA}, one group": lambda: gather_compared(stand, kafka),
            f"{MUSTER}, one group": lambda: gather_compared(stand, muster),
            LARGE: lambda: gather_large(stand),
        },
        # Each takes long, and is either far from its target or has reached it.
        runs=1,
    )
    return Section(
        name="sizes",
        title="Groups of size",
        method=(
            f"Growth: {GROW_MEMBERS} settled members on {GROW_FROM} partitions, whose topic gets "
            f"{GROW_BY} more; from the response to CreatePartitions until each has its final ones "
            f"(Kafka's published case). Groups: {plan.size_groups:,} of {MEMBERS_PER_GROUP} "
            f"members on one topic of {PARTITIONS:,} partitions, over 32 connections, until all "
            f"are stable. One group: {plan.size_compared_members:,} members, one connection each, "
            f"on {plan.size_compared_partitions:,} partitions, from the first join until all own "
            f"their final partitions. Only Muster, in a new server: {plan.size_members:,} "
            f"members on {plan.size_partitions:,} partitions, for each of which Kafka would keep "
            "files; it is shown beside Kafka's group on fewer partitions."
        ),
        rows=make_rows(stand, runs),
        runs=runs,
    )


def grow(stand: Stand, server: Server) -> Json:
    return stand.run_kload(
        server,
        "grow",
        members=GROW_MEMBERS,
        partitions=GROW_FROM,
        grown_by=GROW_BY,
        rounds=stand.plan.size_growths,
    )


def settle(stand: Stand, server: Server) -> Json:
    groups = stand.plan.size_groups
    return stand.run_kload(
        server,
        "memory",
        topic=GROUPS_TOPIC,
        partitions=PARTITIONS,
        members=groups * MEMBERS_PER_GROUP,
        groups=groups,
    )


def gather_compared(stand: Stand, server: Server) -> Json:
    plan = stand.plan
    members, partitions = plan.size_compared_members, plan.size_compared_partitions
    return gather(stand, server, members, partitions, f"{TOPIC}-size")


def gather(stand: Stand, server: Server, members: int, partitions: int, topic: str) -> Json:
    with start_wire_crowd(
        "converge",
        server,
        members,
        partitions,
        topic=topic,
        rounds=1,
        warm_up=1,
        pause=1,
    ) as load:
        report = load.read_report(stand.timeout_s)
    check_report(report)
    return report


def gather_large(stand: Stand) -> Json:
    """Uses a new server, because one request cannot create a topic of that size."""
    folder = Path(tempfile.mkdtemp(prefix="muster-bench-"))
    topics = {TOPIC: stand.plan.size_partitions}
    try:
        with MusterServer(folder / "data", topics=topics) as server:
            return gather(stand, describe(server), stand.plan.size_members, 0, TOPIC)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_rows(stand: Stand, runs: dict[str, list[Json]]) -> tuple[Row, ...]:
    plan = stand.plan
    members, groups = f"{plan.size_members:,}", f"{plan.size_groups:,}"
    compared = f"{plan.size_compared_members:,}"
    large = f"{members} members on {plan.size_partitions:,} partitions"

    def row(what: str, name: str, kafka: str, muster: str, target: Target | None) -> Row:
        return Row(what, "ms", flatten(runs[kafka], name), flatten(runs[muster], name), target)

    def initial(what: str, muster: str, target: Target | None) -> Row:
        kafka = pick(runs[f"{KAFKA}, one group"], "initial_ms")
        return Row(what, "ms", kafka, pick(runs[muster], "initial_ms"), target)

    return (
        row(
            f"a topic of {GROW_MEMBERS} members grows by {GROW_BY}",
            "grow_ms",
            f"{KAFKA}, growth",
            f"{MUSTER}, growth",
            Target(max_value=300),
        ),
        Row(
            f"{groups} groups of {MEMBERS_PER_GROUP} settle",
            "ms",
            pick(runs[f"{KAFKA}, groups"], "settle_ms"),
            pick(runs[f"{MUSTER}, groups"], "settle_ms"),
            Target(max_ratio=0.7),
        ),
        initial(f"{compared} members of one group settle", f"{MUSTER}, one group", None),
        initial(f"{large} settle", LARGE, Target(max_value=30_000)),
        row(f"one joins {large}", "join_ms", f"{KAFKA}, one group", LARGE, None),
    )
