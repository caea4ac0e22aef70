"""Shards that are stopped because a command of theirs would have violated an invariant.

The command is refused before anything of it is replayed, so memory and log are as they were before
it. The shard takes no commands until the server is restarted; the other shards go on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import structlog

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.replay.invariants import NOT_CHECKED, Violation, find_violation
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.dispatch.command_table import COMMANDS, Loading, Route
from coordinator.runtime.api import Reply
from coordinator.runtime.commands.waiting_members import WaitingMembers
from coordinator.runtime.loop.stats import Stats
from model.commands.command import Command
from model.errors import LogPartitionStopped
from model.ids import GroupId, LogPartition, compute_log_partition

log = structlog.get_logger()

EVIDENCE_CHARACTERS_MAX: Final = 1_000_000
STOPPED: Final = "The log partition of the group is stopped: see the server's log."


class StoppedShards:
    """Checks outcomes, and stops log partitions.

    ``keep`` stores the evidence for whoever mends the bug, by log partition.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        liveness: Liveness,
        stats: Stats,
        waiting: WaitingMembers,
        keep: Callable[[LogPartition, str], None],
    ) -> None:
        self.on_stopped: Callable[[], None] = lambda: None
        """Called when a shard is stopped; set at start."""
        self._shards = shards
        self._liveness = liveness
        self._stats = stats
        self._waiting = waiting
        self._keep = keep

    def check(self, shard: Shard, group_id: GroupId, command: object, outcome: Outcome) -> bool:
        """Whether the outcome may be applied; if not, its shard is stopped, or was before."""
        if shard.soft.is_stopped:
            return False
        if outcome.converted is not None or outcome.prepared is not None:
            return True
        self._stats.invariant_checks += 1
        try:
            found = find_violation(shard, group_id, outcome.records)
        except Exception as bug:  # noqa: BLE001 - the state or the records are not as they must be
            found = Violation(NOT_CHECKED, repr(bug))
        if found is None:
            return True
        self._stop(shard, group_id, found, command, outcome)
        return False

    def refuse(self, command: Command, reply: Reply) -> bool:
        """Answer a command of a stopped shard; ``False`` if it can be handled.

        Lists, descriptions and the ledger go on: what they show is right.
        """
        named: object
        row = COMMANDS[type(command)]
        if row.route is Route.EXPLAIN:
            return False
        match row.loading:
            case Loading.GROUP:
                named = getattr(command, "group_id")  # noqa: B009 - each such command has one
                assert isinstance(named, str)
                is_refused = self.is_stopped(GroupId(named))
            case Loading.LOG_PARTITION:
                named = getattr(command, "partition")  # noqa: B009 - ditto
                assert isinstance(named, int)
                is_refused = 0 <= named < len(self._shards) and self._shards[named].soft.is_stopped
            case _:
                return False
        if is_refused:
            self._stats.count_error(LogPartitionStopped.code.name)
            reply(LogPartitionStopped(STOPPED))
        return is_refused

    def is_stopped(self, group_id: GroupId) -> bool:
        """Whether the shard of the group is stopped."""
        if not self._stats.log_partitions_stopped:
            return False
        return self._shards[compute_log_partition(group_id, len(self._shards))].soft.is_stopped

    def _stop(
        self, shard: Shard, group_id: GroupId, found: Violation, command: object, outcome: Outcome
    ) -> None:
        shard.soft.is_stopped = True
        self._stats.log_partitions_stopped += 1
        self._stats.invariant_violations[found.invariant] += 1
        log.critical(
            "invariant_violated",
            invariant=found.invariant,
            detail=found.detail,
            group_id=group_id,
            log_partition=shard.partition,
        )
        self.on_stopped()
        self._end_sessions(shard)
        self._waiting.refuse(self.is_stopped, LogPartitionStopped(STOPPED))
        evidence = compute_evidence(shard, group_id, found, command, outcome)
        self._keep(shard.partition, evidence)

    def _end_sessions(self, shard: Shard) -> None:
        """Heartbeats that are answered from memory come to an end, and no member expires."""
        for group in shard.consumer_groups.values():
            for member_id in group.entries:
                self._liveness.remove(group.group_id, member_id)


def log_evidence(partition: LogPartition, evidence: str) -> None:
    """Keep evidence in the log, where there is no folder for it."""
    log.critical("invariant_evidence", log_partition=partition, evidence=evidence)


def compute_evidence(
    shard: Shard, group_id: GroupId, found: Violation, command: object, outcome: Outcome
) -> str:
    """What was violated, by which command, and what the group was before."""
    lines = _list_evidence(shard, group_id, found, command, outcome)
    text, left = [], EVIDENCE_CHARACTERS_MAX
    for line in lines:
        text.append(line[:left])
        left -= len(text[-1]) + 1
        if left <= 0:
            break
    return "\n".join(text) + "\n"


def _list_evidence(
    shard: Shard, group_id: GroupId, found: Violation, command: object, outcome: Outcome
) -> Iterator[str]:
    yield f"invariant {found.invariant}: {found.detail}"
    yield f"log partition {shard.partition}, group {group_id!r}"
    yield f"command {command!r}"
    yield "records"
    for record in outcome.records:
        yield f"  {record!r}"
    yield "the group before"
    group = shard.consumer_groups.get(group_id)
    if group is None:
        yield "  none"
        return
    yield f"  group epoch {group.group_epoch}, assignment epoch {group.target_epoch}"
    for member in group.entries.values():
        yield (
            f"  {member.member_id}: epoch {member.member_epoch}, {member.state.name}, assigned "
            f"{_name(group, member.assigned)}, pending revocation "
            f"{_name(group, member.pending_revocation)}, target {_name(group, member.target or ())}"
        )


def _name(group: ConsumerGroup, numbers: Sequence[int]) -> str:
    """The partitions; the bare numbers if these are what is wrong."""
    try:
        return repr(group.numbers.topic_partitions(numbers))
    except LookupError:
        return f"numbers {list(numbers)}"
