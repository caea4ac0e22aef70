"""One seed: a safety phase with faults, then a liveness phase without."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from coordinator.core.replay.group_records import replay
from coordinator.core.state.shard import Shard
from coordinator.runtime.loading.shard_loader import load_shard
from model.caller import INTERNAL
from model.commands.topics import GrowTopic
from model.ids import GroupId, LogPartition, TopicName, compute_log_partition
from storage.codec.errors import CodecError
from storage.log.fold import PartitionFold
from tests.sim.checkers.convergence import compute_epochs, compute_unconverged, is_anything_moving
from tests.sim.checkers.violations import check
from tests.sim.scenario import MEMBERS_MIN, SAFETY_MS, Scenario
from tests.sim.tables import Pair, tallied_steps
from tests.sim.world import GROUPS, World
from tests.support.offsets import read_group_offsets
from tests.support.shadow import describe_shards
from tests.support.virtual.server import quiet_logs, take_logged_failures
from tests.written import check_writers, raise_found

DELIVERED_MIN = 300
SLACK_MS = 3_000
TRANSACTIONS_END_MS = 20_000
LATE_MS = 3_000
"""What was sent late has arrived by then."""
LONGEST_REBALANCE_TIMEOUT_MS = 15_000
LONGEST_ASSIGNMENT_INTERVAL_MS = 2_000
CHECK_EVERY_MS = 2_000
CLASSIC_MS = 60_000
"""What two rebalances of a classic group may take, each with members that are gone."""


@dataclass(frozen=True)
class Result:
    """What a seed was made of."""

    seed: int
    trace: str
    delivered: int
    members: int
    faults: Counter[str]
    reached: Counter[Pair]
    virtual_ms: int
    converged_ms: int


def run_seed(seed: int, verbose: bool = False) -> Result:
    """Run a seed; raises a violation, or any other exception that a bug may bring about."""
    quiet_logs()
    check_writers()
    world = World(seed, verbose)
    scenario = Scenario(world)
    scenario.schedule()
    with tallied_steps(world.reached):
        run_safety_phase(world, scenario)
        converged_ms = run_liveness_phase(world, scenario)
        check_end(world)
    check_written()
    check_logged()
    check(world.delivered >= DELIVERED_MIN, "seed", f"only {world.delivered} messages")
    check(len(world.clients) >= MEMBERS_MIN, "seed", f"only {len(world.clients)} members")
    check(world.faults.is_enough, "seed", f"only these faults: {world.faults.happened}")
    return Result(
        seed,
        world.trace.hexdigest(),
        world.delivered,
        len(world.clients),
        world.faults.happened,
        world.reached,
        world.time.now_ms,
        converged_ms,
    )


def check_logged() -> None:
    """A bug in an answer is logged, and the client is left to ask again: nobody else sees it."""
    found = take_logged_failures()
    check(not found, "seed", f"the runtime logged {len(found)} exceptions: {found[:3]}")


def check_written() -> None:
    """S13: every batch, decoded, is what was meant."""
    try:
        raise_found()
    except (AssertionError, CodecError) as found:
        check(False, "S13", str(found))


def run_safety_phase(world: World, scenario: Scenario) -> None:
    """Faults strike between any two turns; every write and every answer is checked."""
    next_check_ms = 0
    may_crash = "server crash" in world.faults.on
    while world.time.now_ms < SAFETY_MS or world.delivered < DELIVERED_MIN:
        world.step()
        if may_crash:
            scenario.maybe_crash()
            world.crash_in_conversion()
        if world.time.now_ms >= next_check_ms:
            next_check_ms = world.time.now_ms + CHECK_EVERY_MS
            world.check_live("in the safety phase")
            scenario.fill_up()
            check(world.time.now_ms < 20 * SAFETY_MS, "seed", "nothing happens any more")


def run_liveness_phase(world: World, scenario: Scenario) -> int:
    """L1: faults have stopped, and what is not converged must converge. How long it took."""
    world.faults.is_healed = True
    for client in world.clients:
        client.resume()
        client.run(client.resume_revoking)
    for producer in world.coordinator.producers:
        producer.finish()
    while not world.is_up or world.process.is_stalled:
        world.step()
    for group in GROUPS:
        scenario.let_all_in(group)
        scenario.start_client(group)
    began_ms = world.time.now_ms
    while not is_anything_moving(world):
        world.step()
        check(world.time.now_ms < began_ms + 10_000, "seed", "nothing was left to converge")
    check(compute_unconverged(world) is not None, "seed", "it had converged already")
    settings = world.settings
    bound_ms = (
        settings.group_consumer_max_session_timeout_ms
        + LONGEST_REBALANCE_TIMEOUT_MS
        + 3 * settings.group_consumer_max_heartbeat_interval_ms
        + max(settings.group_consumer_assignment_interval_ms, LONGEST_ASSIGNMENT_INTERVAL_MS)
        + SLACK_MS
    )
    if scenario.has_classic_members:
        bound_ms += CLASSIC_MS
    while (why := compute_unconverged(world)) is not None:
        passed_ms = world.time.now_ms - began_ms
        check(passed_ms < bound_ms, "L1", f"not converged after {passed_ms} ms: {why}")
        world.run_for(500)
        world.check_deadlines()
    converged_ms = world.time.now_ms - began_ms
    check_steady(world)
    if world.seed % 3 == 0:
        check_topics_noticed(world, bound_ms)
    end_transactions(world)
    return converged_ms


def end_transactions(world: World) -> None:
    """S17, L2: every transaction ends, and then nothing waits."""
    coordinator = world.coordinator
    end_ms = world.time.now_ms + TRANSACTIONS_END_MS
    while any(producer.transaction is not None for producer in coordinator.producers):
        world.step()
        check(world.time.now_ms < end_ms, "L2", "a transaction does not end")
    if coordinator.producers:
        world.run_for(LATE_MS)
    waiting = world.log.offsets.describe_waiting()
    check(not waiting, "S17", f"all transactions have ended, and these wait: {waiting}")
    for shard in world.runtime.shards:
        check(not shard.open_transactions, "S17", f"{shard.open_transactions} wait for nothing")
        left = list(world.disk.pending(shard.partition))
        check(not left, "S17", f"the store has {left} waiting")


def check_steady(world: World) -> None:
    """L9: nothing moves any more."""
    before = compute_epochs(world)
    intervals_ms = [
        world.runtime.settings_of(group_id).group_consumer_heartbeat_interval_ms
        for group_id in (before or (GroupId(GROUPS[0]),))
    ]
    world.run_for(3 * max(intervals_ms))
    after = compute_epochs(world)
    check(before == after, "L9", f"epochs go on from {before} to {after}")
    why = compute_unconverged(world)
    check(why is None, "L9", f"converged, and then not: {why}")


def check_topics_noticed(world: World, bound_ms: int) -> None:
    """L7: a topic grows, nothing else happens, and its partitions have owners."""
    topic = world.runtime.image.by_name.get(TopicName("foo"))
    if topic is None:
        world.create_topic("foo", 3)
    else:
        world.admin(GrowTopic(INTERNAL, topic.name, topic.partitions + 2))
    began_ms = world.time.now_ms
    world.run_for(500)
    while (why := compute_unconverged(world)) is not None:
        passed_ms = world.time.now_ms - began_ms
        check(passed_ms < bound_ms, "L7", f"not noticed for {passed_ms} ms: {why}")
        world.run_for(500)


def check_end(world: World) -> None:
    """S13 by the real replay of the log and of its compaction; deleted topics are gone."""
    world.check_live("at the end")
    world.door.check_answered(world.time.now_ms)
    live = describe_shards(world.runtime.shards)
    for how, replayed in (("log", replay_log(world)), ("latest", replay_latest(world))):
        if describe_shards(replayed) != live:
            name = "S13" if how == "log" else "S14"
            check(False, name, f"the replay of {how} is not the live state")
    for shard, again in zip(world.runtime.shards, replay_latest(world), strict=True):
        is_same = (shard.producers, shard.offset_groups) == (again.producers, again.offset_groups)
        check(is_same, "S14", f"what a start knows of offsets of {shard.partition} is otherwise")
        is_same = shard.freezes == again.freezes
        check(is_same, "S14", f"what a start knows of freezes of {shard.partition} is otherwise")
    check_stored_offsets(world)
    check_trimmed_log(world)
    check(not list(world.disk.side(b"\x03")), "L10", "a topic's deletion did not end")
    names = world.runtime.image.by_name
    for place in world.offsets.places():
        if place[1] not in names:
            gone = world.stored(*place) == -1
            check(gone, "L10", f"{place} has an offset of a topic that was deleted")
    world.check_acknowledged()


def check_trimmed_log(world: World) -> None:
    """What trimming left of each partition's log comes to what the store says of it."""
    for number in map(LogPartition, range(world.disk.partitions)):
        folded = PartitionFold()
        for batch in world.disk.read_log(number):
            folded.apply(batch)
        latest = {entry.key: entry for entry in world.disk.latest(number)}
        check(folded.latest == latest, "S13", f"the trimmed log {number} folds to something else")


def check_stored_offsets(world: World) -> None:
    """S13, S15: the store shows what a fold of the log shows."""
    visible = world.log.offsets.visible
    stored = {
        (found.group_id, found.topic, found.partition): found.value.offset
        for number in map(LogPartition, range(world.disk.partitions))
        for group_id in world.disk.offset_group_ids(number)
        for found in read_group_offsets(world.disk, number, group_id)
    }
    expected = {place: logged.offset for place, logged in visible.items()}
    check(stored == expected, "S15", lambda: f"stored are {stored}, by the log {expected}")


def make_shards(world: World) -> list[Shard]:
    """Empty ones."""
    return [
        Shard(LogPartition(number), world.settings, world.runtime.image)
        for number in range(world.disk.partitions)
    ]


def replay_log(world: World) -> list[Shard]:
    """Shards made anew from the whole log."""
    shards = make_shards(world)
    for write in world.disk.writes:
        for record in write.records:
            group_id = getattr(record.key, "group_id", None) or getattr(record.key, "group", None)
            assert group_id is not None
            replay(shards[compute_log_partition(group_id, len(shards))], record)
    return shards


def replay_latest(world: World) -> list[Shard]:
    """Shards made anew from the compaction of the log, as at a start."""
    shards = make_shards(world)
    for shard in shards:
        load_shard(world.disk, shard)
    return shards
