"""Rates on the Kafka wire: steady heartbeats, OffsetCommit, joins. The generator is kload."""

from __future__ import annotations

from bench.figures import Json, Row, Section, Target, pick
from bench.kafka_settings import set_assignment_interval_ms, set_fsync_of_commits
from bench.stand import Server, Stand

TOPIC_PARTITIONS = 1000
CONNS = 32
PIPELINED = 8
"""Commits in flight on a connection of a client that does not wait for the last one's answer."""
KAFKA_DEFAULT_INTERVAL_MS = 1000


def measure_heartbeats(stand: Stand) -> Section:
    """1,000 members of 10 groups on 32 connections."""
    plan = stand.plan

    def run(server: Server) -> Json:
        return stand.run_kload(
            server,
            "heartbeats",
            partitions=TOPIC_PARTITIONS,
            conns=CONNS,
            seconds=plan.rate_s,
            warm_up=plan.rate_warm_up_s,
        )

    kafka, muster = stand.kafka, stand.muster
    runs = stand.interleave({"Kafka": lambda: run(kafka), "Muster": lambda: run(muster)})
    return Section(
        name="heartbeats",
        title="Steady heartbeats",
        method=(
            "1,000 settled members of 10 groups share 32 connections, one heartbeat in flight on "
            "each, as fast as the answers come. They come faster than members are told to send, so "
            "Muster parks none of them."
        ),
        rows=make_rate_rows(
            "heartbeats", runs, rate=Target(min_ratio=2), cpu=Target(max_value=10, max_ratio=0.5)
        ),
        runs=runs,
    )


def measure_commits(stand: Stand) -> Section:
    """OffsetCommit with 1 and with 100 partitions, on 32 connections, one at a time or more."""
    plan = stand.plan
    kafka, muster = stand.kafka, stand.muster

    def run(server: Server, partitions: int, in_flight: int = 1) -> Json:
        return stand.run_kload(
            server,
            "commits",
            partitions=partitions,
            conns=CONNS,
            in_flight=in_flight,
            seconds=plan.rate_s,
            warm_up=plan.rate_warm_up_s,
        )

    def run_fsynced() -> Json:
        set_fsync_of_commits(stand.broker.bootstrap, is_on=True)
        try:
            return run(kafka, 1)
        finally:
            set_fsync_of_commits(stand.broker.bootstrap, is_on=False)

    deep = f"{PIPELINED} in flight"
    runs = stand.interleave(
        {
            "Kafka, 1 partition": lambda: run(kafka, 1),
            "Muster, 1 partition": lambda: run(muster, 1),
            "Kafka, fsynced": run_fsynced,
            f"Kafka, {deep}": lambda: run(kafka, 1, PIPELINED),
            f"Muster, {deep}": lambda: run(muster, 1, PIPELINED),
            "Kafka, 100 partitions": lambda: run(kafka, 100),
            "Muster, 100 partitions": lambda: run(muster, 100),
        }
    )
    one, hundred = pick_load(runs, "1 partition"), pick_load(runs, "100 partitions")
    pipelined = pick_load(runs, deep)
    durable = {"Kafka": runs["Kafka, fsynced"], "Muster": one["Muster"]}
    offsets = Row(
        "commits of 100 partitions: offsets",
        "/s",
        pick(hundred["Kafka"], "offsets_rate"),
        pick(hundred["Muster"], "offsets_rate"),
        Target(min_ratio=1),
        more_is_better=True,
    )
    return Section(
        name="commits",
        title="OffsetCommit",
        method=(
            "32 groups without members, a connection each, one commit in flight on each, ever "
            f"higher offsets of the partitions in turn; and {deep}, as from consumers that "
            "commit without waiting. **Muster answers when the commit is fsynced; Kafka answers "
            "before, and fsyncs nothing here** (its defaults), but for the rows that say so: "
            "there its topic has flush.messages=1."
        ),
        rows=(
            *make_rate_rows("commits of 1 partition", one, rate=Target(min_ratio=1.3)),
            *make_rate_rows(
                "commits of 1 partition, Kafka fsyncs too", durable, rate=Target(min_ratio=1.3)
            ),
            *make_rate_rows(
                f"commits of 1 partition, {deep}", pipelined, rate=Target(min_ratio=1.3)
            ),
            offsets,
            *make_rate_rows("commits of 100 partitions", hundred),
        ),
        runs=runs,
    )


def pick_load(runs: dict[str, list[Json]], load: str) -> dict[str, list[Json]]:
    """The runs of one load, by side."""
    return {side: runs[f"{side}, {load}"] for side in ("Kafka", "Muster")}


def measure_joins(stand: Stand) -> Section:
    """New members of one group, targets computed at once; and Kafka with its default interval."""
    plan = stand.plan
    broker, kafka, muster = stand.broker, stand.kafka, stand.muster

    def run(server: Server) -> Json:
        return stand.run_kload(
            server, "joins", partitions=TOPIC_PARTITIONS, conns=CONNS, rounds=plan.join_rounds
        )

    def run_at_default() -> Json:
        set_assignment_interval_ms(broker.bootstrap, KAFKA_DEFAULT_INTERVAL_MS)
        try:
            return run(kafka)
        finally:
            set_assignment_interval_ms(broker.bootstrap, 0)

    runs = stand.interleave(
        {
            "Kafka": lambda: run(kafka),
            "Muster": lambda: run(muster),
            "Kafka, default interval": run_at_default,
        }
    )
    beside = {"Kafka": runs["Kafka, default interval"], "Muster": runs["Muster"]}
    return Section(
        name="joins",
        title="Joins of new members",
        method=(
            "1,000 members join one group on a topic of 1,000 partitions over 32 connections, one "
            "join in flight on each. With an assignment interval of 0 a target is computed at once "
            "(Muster's default); Kafka's own default is one target a second at most, so that it "
            "answers most joins without one."
        ),
        rows=(
            *make_rate_rows("joins", runs, rate=Target(min_ratio=2)),
            *make_rate_rows("joins, Kafka at its default interval of 1 s", beside),
        ),
        runs=runs,
    )


def make_rate_rows(
    what: str,
    runs: dict[str, list[Json]],
    *,
    rate: Target | None = None,
    cpu: Target | None = None,
) -> tuple[Row, ...]:
    """Rate, CPU of the server for each operation, and latency."""
    kafka, muster = runs["Kafka"], runs["Muster"]

    def row(of: str, unit: str, *path: str, target: Target | None, more: bool = False) -> Row:
        return Row(f"{what}: {of}", unit, pick(kafka, *path), pick(muster, *path), target, more)

    return (
        row("rate", "/s", "rate", target=rate, more=True),
        row("server CPU each", "µs", "server_cpu_us_per_op", target=cpu),
        *(
            row(f"latency {percentile}", "ms", "latency_ms", percentile, target=None)
            for percentile in ("p50", "p99")
        ),
    )
