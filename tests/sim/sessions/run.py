"""One seed: faults strike for a while, then they stop, all is read, and all leave."""

from __future__ import annotations

import gc
import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.sim.sessions.ledger import Place
from tests.sim.sessions.machines.patches import patched
from tests.sim.sessions.owners import find_members
from tests.sim.sessions.scenario import FAULTS_S, Scenario
from tests.sim.sessions.verdicts import check
from tests.sim.sessions.world import World
from tests.sim.tables import Pair, tallied_steps
from tests.support.virtual.server import quiet_logs

SLACK_S = 22.0
"""A machine may stand still for 12 s as the faults stop; clients wait up to 2 s between tries."""

CLASSIC_S = 20.0
"""What one more rebalance of a classic group may take."""


@dataclass(frozen=True)
class Result:
    """What a seed was made of."""

    seed: int
    trace: str
    delivered: int
    members: int
    commits: int
    faults: Counter[str]
    reached: Counter[Pair]
    virtual_ms: int
    converged_ms: int


def run_seed(seed: int, verbose: bool = False) -> Result:
    """Run a seed; raises a violation, or any other exception that a bug may bring about."""
    quiet_logs()
    world = World(seed, verbose)
    reached: Counter[Pair] = Counter()
    with quiet_sdk(), patched(world.loop, world.random, world.network), tallied_steps(reached):
        try:
            scenario = Scenario(world)
            scenario.begin()
            world.loop.run_for(FAULTS_S)
            scenario.end()
            converged_ms = check_all_is_read(world, scenario)
            while world.ghosts_left:
                # Until the checker says that they are there for too long.
                world.loop.run_for(0.5)
            check_all_leave(world)
            return Result(
                seed,
                world.trace.hexdigest(),
                world.network.delivered,
                len(world.applications),
                world.ledger.commits,
                world.faults.happened,
                reached,
                int(world.loop.passed_s * 1000),
                converged_ms,
            )
        finally:
            world.loop.unwind([*world.machines, *world.server.machines, world.admin_machine])


@contextmanager
def quiet_sdk() -> Iterator[None]:
    """What the SDK logs is not for here; garbage is left to the end."""
    loggers = [logging.getLogger(name) for name in ("muster", "asyncio", "coordinator")]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled
        if was_enabled:
            gc.enable()


def check_all_is_read(world: World, scenario: Scenario) -> int:
    """Each partition of a topic that a living application reads is read; how long that took."""
    began_s = world.loop.time()
    longest_rebalance_s = max(
        (app.options.rebalance_timeout_ms for app in world.applications), default=0
    )
    bound_s = world.longest_session_s() + longest_rebalance_s / 1000 + SLACK_S
    if any(app.options.is_classic for app in world.applications):
        bound_s += CLASSIC_S
    while unread := find_unread(world, scenario, began_s):
        passed_s = world.loop.time() - began_s
        what = f"after {passed_s:.0f} s without faults nobody reads {unread[:3]}"
        check(passed_s < bound_s, "unread", what)
        world.loop.run_for(0.5)
    return int((world.loop.time() - began_s) * 1000)


def find_unread(world: World, scenario: Scenario, since_s: float) -> list[Place]:
    """What somebody subscribes to, and nobody has read since then."""
    assert world.admin is not None
    topics = world.admin.topics
    unread = []
    for group in scenario.groups:
        subscribed = {
            topic
            for app in world.applications
            if app.group == group and not app.is_done
            for topic in app.options.topics
        }
        for topic in sorted(subscribed & topics.keys()):
            for partition in range(topics[topic]):
                place = Place(group, topic, partition)
                if world.read_s.get(place, 0.0) < since_s:
                    unread.append(place)
    return unread


def check_all_leave(world: World) -> None:
    """All applications end; their groups are empty within a session timeout."""
    for application in world.applications:
        application.end()
    # Those are woken from outside of their machines.
    bound_s = world.longest_session_s() + SLACK_S
    began_s = world.loop.time()
    while True:
        world.loop.run_for(0.5)
        runtime = world.server.runtime
        left = find_members(runtime) if runtime is not None else set()
        is_over = not left and all(app.is_done for app in world.applications)
        if is_over:
            return
        passed_s = world.loop.time() - began_s
        waiting = [app.name for app in world.applications if not app.is_done]
        what = f"{passed_s:.0f} s after the end {left} are there, and {waiting} have not closed"
        check(passed_s < bound_s, "ghost", what)
