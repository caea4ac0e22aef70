"""CPU of servers with idle members."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

from bench.crowds import STREAMS, TOPIC, start_session_crowd, start_wire_crowd
from bench.figures import Json, Row, Section, Target
from bench.peer import Load, run_kload
from bench.stand import Stand, check_report

WARM_UP_S = 2.0
KAFKA = "Kafka"
PARKED = "Muster, parked"
UNPARKED = "Muster, parking off"
SESSIONS = "Muster, sessions"


def measure_idle(stand: Stand) -> Section:
    """All servers at the same time: each has next to nothing to do, and only CPU is measured."""
    plan = stand.plan
    members = plan.idle_members
    runs: dict[str, list[Json]] = {}
    with ExitStack() as stack:
        unparked = stack.enter_context(stand.another_muster({"gateway.park.ms": 0}))
        sessions = stack.enter_context(stand.another_muster())
        run_kload("topics", sessions.bootstrap, f"{TOPIC}={plan.crowd_partitions}")
        starts = {
            KAFKA: partial(start_wire_crowd, "idle", stand.kafka),
            PARKED: partial(start_wire_crowd, "idle", stand.muster),
            UNPARKED: partial(start_wire_crowd, "idle", unparked),
            SESSIONS: partial(start_session_crowd, "idle", sessions),
        }
        for turn in stand.turns(plan.idle_runs):
            for count in (members, 1):
                stand.note(f"{count} idle, run {turn + 1} of {plan.idle_runs}, all servers at once")
                for side, report in run_together(stand, starts, count).items():
                    runs.setdefault(f"{side}, {count}", []).append(report)
    return Section(
        name="idle",
        title="Idle members",
        method=(
            f"CPU of the server for {members:,} members of one settled group in "
            f"{plan.idle_s:g} s, less that for 1 member. All four servers run at the same time, "
            "each with its own members, because together they leave the CPUs idle. On the wire "
            "each member has a connection and sends heartbeats at the interval of the server: 5 s "
            "for Kafka and for Muster with `gateway.park.ms=0`, about half a second for Muster "
            f"with its defaults, which holds them. Sessions: members of the SDK share {STREAMS} "
            "streams."
        ),
        rows=make_rows(runs, members),
        runs=runs,
    )


def run_together(
    stand: Stand, starts: Mapping[str, Callable[..., Load]], members: int
) -> dict[str, Json]:
    """Run every side once, all at the same time."""
    plan = stand.plan
    with ExitStack() as stack:
        loads = {
            side: stack.enter_context(
                start(
                    members=members,
                    partitions=plan.crowd_partitions,
                    warm_up=WARM_UP_S,
                    seconds=plan.idle_s,
                )
            )
            for side, start in starts.items()
        }
        reports = {side: load.read_report(stand.timeout_s) for side, load in loads.items()}
    for report in reports.values():
        check_report(report)
    return reports


def make_rows(runs: dict[str, list[Json]], members: int) -> tuple[Row, ...]:
    def net(side: str) -> tuple[float, ...]:
        pairs = zip(runs[f"{side}, {members}"], runs[f"{side}, 1"], strict=True)
        return tuple(compute_cpu(many) - compute_cpu(one) for many, one in pairs)

    what = f"CPU a second of {members:,} idle members"
    # The targets are for 1,000 members; scale them for fewer.
    scale = members / 1000
    return (
        Row(f"{what}: wire, parked", "ms", net(KAFKA), net(PARKED), Target(max_value=30 * scale)),
        Row(
            f"{what}: wire, parking off",
            "ms",
            net(KAFKA),
            net(UNPARKED),
            Target(max_value=8 * scale),
        ),
        Row(f"{what}: sessions", "ms", net(KAFKA), net(SESSIONS), Target(max_value=0.5 * scale)),
    )


def compute_cpu(report: Json) -> float:
    """Milliseconds of CPU per second."""
    return float(report["server_cpu_ms_per_second"])
