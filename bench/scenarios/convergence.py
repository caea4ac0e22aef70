"""How long a group takes to converge after a member joins or leaves."""

from __future__ import annotations

from collections.abc import Callable

from bench.crowds import STREAMS, TOPIC, start_session_crowd, start_wire_crowd
from bench.figures import Json, Row, Section, Target, flatten
from bench.peer import Load, run_kload
from bench.stand import Server, Stand, check_report

WARM_UP_S = 1.5
PAUSE_S = 1.0
KAFKA = "Kafka"
WIRE = "Muster, wire"
SESSIONS = "Muster, sessions"


def measure_convergence(stand: Stand) -> Section:
    """Kafka and Muster over the Kafka protocol, Muster over sessions, each with its defaults."""
    plan = stand.plan
    kafka, muster = stand.kafka, stand.muster
    run_kload("topics", muster.bootstrap, f"{TOPIC}={plan.crowd_partitions}")

    def run(start: Callable[..., Load], server: Server, changes: int) -> Json:
        with start(
            "converge",
            server,
            plan.crowd_members,
            plan.crowd_partitions,
            rounds=changes,
            warm_up=WARM_UP_S,
            pause=PAUSE_S,
        ) as load:
            report = load.read_report(stand.timeout_s)
        check_report(report)
        return report

    runs = stand.interleave(
        {
            KAFKA: lambda: run(start_wire_crowd, kafka, plan.kafka_changes),
            WIRE: lambda: run(start_wire_crowd, muster, plan.muster_changes),
            SESSIONS: lambda: run(start_session_crowd, muster, plan.muster_changes),
        }
    )
    return Section(
        name="convergence",
        title="Convergence",
        method=(
            f"A settled group of {plan.crowd_members:,} members on a topic of "
            f"{plan.crowd_partitions:,} partitions. One more member joins, then the oldest member "
            f"leaves, {PAUSE_S:g} s apart. The time ends when every "
            "member is at the new epoch, every partition has one owner and no member has two more "
            "than another. On the wire each member has a connection, and the new one opens one. "
            f"Sessions: members of the SDK in one process on {STREAMS} streams, the new one "
            "on its own stream; the time includes their own costs."
        ),
        rows=make_rows(runs, plan.crowd_members),
        runs=runs,
    )


def make_rows(runs: dict[str, list[Json]], members: int) -> tuple[Row, ...]:
    def row(change: str, name: str, side: str, target: Target | None) -> Row:
        how = "wire" if side == WIRE else "sessions"
        what = f"one {change} {members:,} members, {how}"
        return Row(what, "ms", flatten(runs[KAFKA], name), flatten(runs[side], name), target)

    return (
        row("joins", "join_ms", WIRE, Target(max_value=70)),
        row("leaves", "leave_ms", WIRE, Target(max_value=150)),
        row("joins", "join_ms", SESSIONS, Target(max_value=45)),
        row("leaves", "leave_ms", SESSIONS, Target(max_value=100)),
    )
