"""Rates and latencies in front of a cluster: heartbeats, commits of members, relayed requests."""

from __future__ import annotations

from collections.abc import Sequence

from bench.figures import Json, Row, Section, Target, pick
from bench.scenarios.rates import CONNS, TOPIC_PARTITIONS, make_rate_rows
from bench.stand import Stand
from bench.upstream.plan import UpstreamPlan
from bench.upstream.scene import NOT_TAKEN, Place, Scene, commit_options, drive

ALONE, BEFORE = "Muster alone", "in front of a cluster"
CLUSTER, THROUGH, RELAYED = "the cluster alone", "through Muster", "through a relay"
HEARTBEATS_KEPT = 0.9
"""Of the rate without a cluster, so that it counts as the same: runs differ by as much."""
MAX_MORE_MS = 1.0
MAX_RELAYED_MORE_MS = 0.3
MIN_COMMITS_RATIO = 1.5
RECORD_CONNS = 4
KINDS = {"metadata": "Metadata", "coordinator": "FindCoordinator", "offsets": "OffsetFetch"}
CARRIERS = {"produce": "produce", "fetch": "fetch"}

Runs = dict[str, list[Json]]


def measure_heartbeats(stand: Stand, plan: UpstreamPlan, scene: Scene) -> Section:
    """Heartbeats of groups that are here, with and without a cluster behind Muster."""
    alone = stand.muster

    def run(place: Place) -> Json:
        return drive(
            stand,
            place,
            "heartbeats",
            partitions=TOPIC_PARTITIONS,
            conns=CONNS,
            seconds=plan.stand.rate_s,
            warm_up=plan.stand.rate_warm_up_s,
        )

    own = Place(alone.bootstrap, (alone.pid,))
    fronted = Place(scene.node.bootstrap, (scene.node.pid,))
    runs = stand.interleave({ALONE: lambda: run(own), BEFORE: lambda: run(fronted)})
    rows = make_rate_rows(
        "in front: heartbeats",
        name_sides(runs[ALONE], runs[BEFORE]),
        rate=Target(min_ratio=HEARTBEATS_KEPT),
        cpu=Target(max_ratio=round(1 / HEARTBEATS_KEPT, 2)),
    )
    return Section(
        name="upstream-heartbeats",
        title="Heartbeats in front of a cluster",
        method=(
            "1,000 settled members of the consumer protocol, of 10 groups in the place `muster`, "
            "share 32 connections, one heartbeat in flight on each: the load of the plain rows, on "
            "a Muster without a cluster and on one in front of one. CPU is Muster's alone."
        ),
        rows=rows,
        runs=runs,
        sides=(ALONE, BEFORE),
    )


def measure_commits(stand: Stand, plan: UpstreamPlan, scene: Scene) -> Section:
    """OffsetCommit of classic members, one in flight each, to the cluster and through Muster."""
    sizes = (1, plan.few_members, plan.many_members)

    def run(place: Place, members: int) -> Json:
        return drive(
            stand,
            place,
            "member-commits",
            **commit_options(members),
            seconds=plan.stand.rate_s,
            warm_up=plan.stand.rate_warm_up_s,
        )

    sides = {
        f"{side}, {size:,} members": lambda place=place, size=size: run(place, size)
        for size in sizes
        for side, place in ((CLUSTER, scene.cluster), (THROUGH, scene.both))
    }
    runs = stand.interleave(sides)
    rows: list[Row] = []
    for size in sizes:
        pair = [runs[f"{side}, {size:,} members"] for side in (CLUSTER, THROUGH)]
        rows += make_commit_rows(size, *pair, is_crowd=size == plan.many_members)
    return Section(
        name="upstream-commits",
        title="Commits in front of a cluster",
        method=(
            "Members of one classic group, each with a connection of its own, one commit of one "
            "partition in flight, as fast as the responses arrive: to the cluster, and to Muster, "
            "which has taken the group over and commits for all of them to the cluster. CPU "
            "through Muster is that of Muster and of the broker."
        ),
        rows=tuple(rows),
        runs=runs,
        sides=(CLUSTER, THROUGH),
    )


def make_commit_rows(
    members: int, cluster: Sequence[Json], through: Sequence[Json], *, is_crowd: bool
) -> list[Row]:
    """Of a crowd the rate is what counts; of few the latency, of which p50 has a bound."""
    what = f"commits in front, {members:,} member{'s' if members > 1 else ''}"
    rate = Target(min_ratio=MIN_COMMITS_RATIO) if is_crowd else None
    p50 = None if is_crowd else Target(max_more=MAX_MORE_MS)
    rows = make_rate_rows(what, name_sides(cluster, through), rate=rate)
    return [
        Row(row.what, row.unit, row.kafka, row.muster, p50)
        if row.what.endswith("latency p50")
        else row
        for row in rows
    ]


def measure_relays(stand: Stand, plan: UpstreamPlan, scene: Scene) -> Section:
    """Requests and records that go through a relay, and directly to the broker."""

    def ask(place: Place, kind: str) -> Json:
        return drive(
            stand,
            place,
            "asks",
            kind=kind,
            group=NOT_TAKEN,
            seconds=plan.ask_s,
            warm_up=plan.stand.rate_warm_up_s,
        )

    def carry(place: Place, kind: str) -> Json:
        return drive(stand, place, "asks", kind=kind, count=plan.records, conns=RECORD_CONNS)

    sides = {
        f"{side}, {kind}": lambda place=place, kind=kind, how=how: how(place, kind)
        for how, kinds in ((ask, KINDS), (carry, CARRIERS))
        for kind in kinds
        for side, place in ((CLUSTER, scene.cluster), (RELAYED, scene.relay))
    }
    runs = stand.interleave(sides)
    return Section(
        name="upstream-relays",
        title="Relays",
        method=(
            "One connection with one request in flight: Metadata of one topic, FindCoordinator and "
            "OffsetFetch of a group that is in the cluster. And batches of 1 MiB on "
            f"{RECORD_CONNS} connections, {plan.records} on each, one in flight: produced with "
            "acks=1, and fetched. CPU through a relay is that of Muster and of the broker."
        ),
        rows=make_relay_rows(runs),
        runs=runs,
        sides=(CLUSTER, RELAYED),
    )


def make_relay_rows(runs: Runs) -> tuple[Row, ...]:
    """p50 and p99 of requests, and the throughput and CPU of records."""
    rows = []

    def row(what: str, unit: str, kind: str, *path: str, target: Target | None = None) -> Row:
        one, other = (pick(runs[f"{side}, {kind}"], *path) for side in (CLUSTER, RELAYED))
        return Row(what, unit, one, other, target, more_is_better=unit == "MB/s")

    more = Target(max_more=MAX_RELAYED_MORE_MS)
    for kind, name in KINDS.items():
        rows.append(
            row(f"relayed {name}: latency p50", "ms", kind, "latency_ms", "p50", target=more)
        )
        rows.append(row(f"relayed {name}: latency p99", "ms", kind, "latency_ms", "p99"))
    for kind, name in CARRIERS.items():
        rows.append(row(f"relayed {name} of 1 MiB", "MB/s", kind, "mb_per_second"))
        rows.append(
            row(f"relayed {name} of 1 MiB: server CPU each", "µs", kind, "server_cpu_us_per_op")
        )
    return tuple(rows)


def name_sides(one: Sequence[Json], other: Sequence[Json]) -> Runs:
    """As `make_rate_rows` takes them."""
    return {"Kafka": list(one), "Muster": list(other)}
