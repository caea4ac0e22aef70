"""How long members stand still when their group is taken over and given back, and convergence."""

from __future__ import annotations

from uuid import uuid4

from bench.crowds import start_wire_crowd
from bench.figures import Json, Row, Section, Target, flatten, pick
from bench.scenarios.convergence import PAUSE_S, WARM_UP_S
from bench.stand import Server, Stand, check_report
from bench.upstream.movers import Movers
from bench.upstream.plan import UpstreamPlan
from bench.upstream.rates import ALONE, BEFORE, CLUSTER, THROUGH
from bench.upstream.scene import Scene

MAX_PAUSE_MS = 2000
CONVERGENCE_KEPT = 1.2
"""Times that of Muster alone, so that it counts as the same: runs differ by as much."""
CROWD_TOPIC = "kload-crowd-in-front"

REBALANCE, TAKE, JOIN_HERE, RELEASE = "rebalance", "take", "join here", "release"
MOVES = {TAKE: "takeover", RELEASE: "release", JOIN_HERE: "one joins at Muster"}


def measure_convergence(stand: Stand, plan: UpstreamPlan, scene: Scene) -> Section:
    """One joins and one leaves a group of the consumer protocol, with and without a cluster."""
    alone = stand.muster

    def run(server: Server) -> Json:
        with start_wire_crowd(
            "converge",
            server,
            plan.crowd_members,
            plan.crowd_partitions,
            topic=CROWD_TOPIC,
            rounds=plan.stand.muster_changes,
            warm_up=WARM_UP_S,
            pause=PAUSE_S,
        ) as load:
            report = load.read_report(stand.timeout_s)
        check_report(report)
        return report

    runs = stand.interleave({ALONE: lambda: run(alone), BEFORE: lambda: run(scene.node)})

    def row(change: str, name: str) -> Row:
        what = f"in front: one {change} {plan.crowd_members:,} members"
        one, other = (flatten(runs[side], name) for side in (ALONE, BEFORE))
        return Row(what, "ms", one, other, Target(max_ratio=CONVERGENCE_KEPT))

    return Section(
        name="upstream-convergence",
        title="Convergence in front of a cluster",
        method=(
            f"A settled group of {plan.crowd_members:,} members of the consumer protocol on a "
            f"topic of {plan.crowd_partitions:,} partitions, each with a connection: one more "
            "joins, then the oldest leaves, as in the plain rows."
        ),
        rows=(row("joins", "join_ms"), row("leaves", "leave_ms")),
        runs=runs,
        sides=(ALONE, BEFORE),
    )


def measure_moves(stand: Stand, plan: UpstreamPlan, scene: Scene) -> Section:
    """A group of classic members is taken over and given back while it commits."""
    changes: dict[str, list[Json]] = {}
    for turn in stand.turns(plan.stand.runs):
        stand.note(f"a group moves, run {turn + 1} of {plan.stand.runs}")
        for name, report in move_group(stand, plan, scene).items():
            changes.setdefault(name, []).append(report)
            stand.note(f"{name}: the longest pause of a member is {report['longest_pause_ms']} ms")
    return Section(
        name="upstream-moves",
        title="Takeover and release",
        method=(
            f"{plan.moved_members:,} members of one classic group commit every 100 ms and "
            "heartbeat every 3 s, in turn, on one connection each, as stock consumers do: until a "
            "response says that the group rebalances, then JoinGroup and SyncGroup. A pause is the "
            "time between two responses without an error to one member, so it has the 100 ms in "
            "it. The last member joins in the cluster, which is the cluster's own rebalance; then "
            "the group is taken over, one more joins at Muster, and the group is given back. "
            "Kafka's initial delay is its default of 3 s."
        ),
        rows=make_move_rows(changes, plan.moved_members),
        runs=changes,
        sides=(f"a rebalance of {CLUSTER}", THROUGH),
    )


def move_group(stand: Stand, plan: UpstreamPlan, scene: Scene) -> dict[str, Json]:
    """What members of a new group see of each change."""
    group = f"moved-{uuid4().hex[:8]}"
    first = plan.moved_members - 1
    with Movers(scene.node.bootstrap, group, first, timeout_s=stand.timeout_s) as movers:
        seen = {REBALANCE: movers.add()}
        scene.move("take", group)
        seen[TAKE] = movers.wait_until_moved()
        seen[JOIN_HERE] = movers.add()
        scene.move("release", group)
        seen[RELEASE] = movers.wait_until_moved()
    return seen


def make_move_rows(changes: dict[str, list[Json]], members: int) -> tuple[Row, ...]:
    """The longest and the median pause of each change beside the cluster's own rebalance."""
    rows = []
    for change, name in MOVES.items():
        for which, target in (("longest", Target(max_value=MAX_PAUSE_MS)), ("median", None)):
            path = f"{which}_pause_ms"
            one, other = (pick(changes[side], path) for side in (REBALANCE, change))
            wanted = None if change == JOIN_HERE else target
            what = f"{name}, {members:,} members: {which} pause of a member"
            rows.append(Row(what, "ms", one, other, wanted))
    return tuple(rows)
