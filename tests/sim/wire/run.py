"""One seed of the wire: faults, and then nothing but what members do by themselves."""

from __future__ import annotations

from coordinator.runtime.topics import topic_deletion
from tests.sim.checkers.violations import check
from tests.sim.run import Result, check_logged
from tests.sim.tables import tallied_steps
from tests.sim.wire.gateway import seeded_member_ids
from tests.sim.wire.scenario import Scenario
from tests.sim.wire.world import WireWorld
from tests.support.virtual.server import quiet_logs

LOOK_EVERY_MS = 250
SWEEP_EVERY_MS = 2_000
QUIET_MIN_MS = 8_000
REST_MS = 4_000
"""All is read and all members rest for so long: nothing more will happen."""
DELETED_IN_A_TURN = 1
"""Offsets that the walk for a deleted topic reads in a turn: there are few of them here."""


def run_seed(seed: int, verbose: bool = False) -> Result:
    """Run a seed; raises a violation, or any other exception that a bug may bring about."""
    quiet_logs()
    slice_size = topic_deletion.SLICE
    topic_deletion.SLICE = DELETED_IN_A_TURN
    try:
        with seeded_member_ids(seed):
            return _run_seed(seed, verbose)
    finally:
        topic_deletion.SLICE = slice_size


def _run_seed(seed: int, verbose: bool) -> Result:
    world = WireWorld(seed, verbose)
    scenario = Scenario(world)
    scenario.schedule()
    with tallied_steps(world.reached):
        while world.time.now_ms < world.theme.safety_ms and not world.is_over:
            _go_on(world)
        converged_ms = run_quiet_phase(world, scenario)
        world.check_live("at the end")
        world.coordination.check_answered()
    check_logged()
    return Result(
        seed,
        world.trace.hexdigest(),
        world.delivered,
        len(world.members),
        world.faults.happened,
        world.reached,
        world.time.now_ms,
        converged_ms,
    )


def _go_on(world: WireWorld) -> None:
    world.run_for(LOOK_EVERY_MS)
    world.judge.look()
    world.judge.check_read()
    if world.time.now_ms % SWEEP_EVERY_MS < LOOK_EVERY_MS:
        world.check_live("between faults")


def run_quiet_phase(world: WireWorld, scenario: Scenario) -> int:
    """L12: faults have stopped. Nobody is told so: members go on as they are. How long it took."""
    world.faults.is_healed = True
    if not scenario.living:
        scenario.start()
    world.disturb()
    began_ms = rests_since_ms = world.time.now_ms
    while True:
        _go_on(world)
        now_ms = world.time.now_ms
        rests = world.is_up and world.judge.is_all_read
        rests = rests and all(member.is_settled for member in scenario.living)
        if not rests:
            rests_since_ms = now_ms
        if now_ms - began_ms >= QUIET_MIN_MS and now_ms - rests_since_ms >= REST_MS:
            return rests_since_ms - began_ms
        passed_ms = now_ms - began_ms
        is_over = passed_ms > 2 * world.judge.bound_ms
        check(not is_over, "L12", f"no rest after {passed_ms} ms: {_describe(world, scenario)}")


def _describe(world: WireWorld, scenario: Scenario) -> str:
    busy = [str(member) for member in scenario.living if not member.is_settled]
    groups = {member.group for member in scenario.living}
    return f"{busy} do not rest; " + "; ".join(world.judge.describe(group) for group in groups)
