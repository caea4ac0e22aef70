"""Loads the groups at start in time slices, while the loop serves the shards already loaded.

A shard becomes visible as a whole, once the records of all its groups are replayed. Until then
requests for it, reads too, get COORDINATOR_LOAD_IN_PROGRESS (as in Kafka's ``CoordinatorRuntime``),
so no client sees half a group. The sessions of its members start then, not earlier.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress

import structlog

from coordinator.core.classic.classic_rebalance import compute_group_deadlines_at_load
from coordinator.core.consumer.refresh import needs_epoch_for_topics
from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.replay.invariants import is_sound
from coordinator.core.replay.token_records import begin_tokens, end_load
from coordinator.core.state.classic.classic_group import ClassicMember
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.outcome import ArmClassicDeadline
from coordinator.core.state.shard import Shard
from coordinator.core.state.tokens import compute_first_token
from coordinator.runtime.clock import SteadyClock
from coordinator.runtime.loading.shard_loader import ShardLoader
from coordinator.runtime.loading.token_start import TokenStart
from coordinator.runtime.loop.slices import STALL_RETRY_MS, Paced, Slices
from coordinator.runtime.loop.stats import Stats
from model.commands.classic import ClassicDeadline
from model.ids import GroupId, LogPartition, MemberId
from model.log.records import MemberState
from storage.log_store import LogStore, StoreStalled
from translator.translated_sync import compute_deadlines_at_load

log = structlog.get_logger()

SLICE_COST = 3_000
"""The budget of one event-loop iteration. Costs are in approximate microseconds."""

TURN_SLICES = 4
"""How many slices a shard gets, at first, before the next shard's turn."""

SESSION_COST = 2
GROUP_COST = 5
MEMBERS_PER_COST = 5
"""How many members are looked at for a cost of one."""


class Loading:
    """Replaces the empty shards in ``shards`` by loaded ones.

    ``make_shard`` makes a shard with the current topic image. ``arm_timers`` is called after
    sessions have started. ``on_loaded`` is called per shard with the groups whose topics changed
    and the groups that lack a target, ``on_finished`` once all shards are loaded.
    """

    def __init__(
        self,
        store: LogStore,
        slices: Slices,
        clock: SteadyClock,
        stats: Stats,
        liveness: Liveness,
        shards: list[Shard],
        *,
        token_start: TokenStart,
        make_shard: Callable[[LogPartition], Shard],
        arm_timers: Callable[[], None],
        on_loaded: Callable[[Collection[GroupId], Collection[GroupId], Collection[GroupId]], None],
        on_finished: Callable[[], None],
    ) -> None:
        self._slices = slices
        self._clock = clock
        self._token_start = token_start
        self._stats = stats
        self._liveness = liveness
        self._shards = shards
        self._make_shard = make_shard
        self._arm_timers = arm_timers
        self._on_loaded = on_loaded
        self._on_finished = on_finished
        self._began_ms = clock.monotonic_ms()
        self._failure: BaseException | None = None
        self._waiters: list[asyncio.Future[None]] = []
        self._turns = deque(
            _ShardInTurn(self._load_shard(LogPartition(number), store))
            for number in range(store.partitions)
        )
        self._left = dict.fromkeys(map(LogPartition, range(store.partitions)))

    # -------------------------------------------------------------------------------- loading

    def begin(self) -> None:
        """Load in slices."""
        self._slices.go_on(self._load_in_slices())

    def finish(self) -> None:
        """Load the remaining shards at once, a store that stalls too. Raises the store's error."""
        while not self._token_start.is_written:
            with suppress(StoreStalled):
                self._token_start.write()
        while self._turns:
            self._load(SLICE_COST)
        self._end(None)

    def stop(self) -> None:
        """Stop loading."""
        self._slices.stop()

    async def wait(self) -> None:
        """Wait until all shards are loaded. Raises the store's error, which ends the load."""
        if self._turns and self._failure is None:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
        if self._failure is not None:
            raise self._failure

    @property
    def left(self) -> Collection[LogPartition]:
        """The shards still loading."""
        return self._left.keys()

    def _load_in_slices(self) -> Paced[None]:
        while self._turns:
            try:
                self._token_start.write()
                self._load(SLICE_COST)
            except StoreStalled:
                yield STALL_RETRY_MS
                continue
            except Exception as failure:  # noqa: BLE001 - it is the process that must end
                self._end(failure)
                return
            if self._turns:
                yield None
        self._end(None)

    def _load(self, cost: int) -> None:
        """Load for ``cost``, shard by shard.

        A shard's turn grows each time it comes round: a small shard does not wait for a large one,
        and large shards finish one after another rather than all at the end.
        """
        while cost > 0 and self._turns:
            shard = self._turns[0]
            cost -= shard.load(cost)
            if shard.is_loaded:
                self._turns.popleft()
            elif shard.is_turn_over():
                self._turns.rotate(-1)

    def _load_shard(self, partition: LogPartition, store: LogStore) -> Iterator[int]:
        """Load one shard; yields the cost of each step."""
        loader = ShardLoader(store, self._make_shard(partition))
        shard = loader.shard
        log_end = store.next_offset(partition)
        begin_tokens(shard, compute_first_token(self._token_start.wall_ms, log_end))
        yield from loader.steps()
        end_load(shard)
        unsettled = []
        for group in shard.consumer_groups.values():
            if needs_epoch_for_topics(shard, group) or lacks_target(group):
                unsettled.append(group)
            if not is_sound(group):
                shard.soft.unsound_groups.add(group.group_id)
                log.warning("group_violates_invariants", group_id=group.group_id)
            yield GROUP_COST + len(group.entries) // MEMBERS_PER_COST
        self._show(shard, unsettled)
        self._stats.records_loaded += loader.records
        yield from self._begin_sessions(shard)

    def _show(self, shard: Shard, groups: list[ConsumerGroup]) -> None:
        image = self._make_shard(shard.partition).image
        if shard.image is not image:
            # Topics changed while the shard was loading, so check every group again.
            shard.image = image
            groups = list(shard.consumer_groups.values())
        self._shards[shard.partition] = shard
        del self._left[shard.partition]
        to_refresh = [group.group_id for group in groups if needs_epoch_for_topics(shard, group)]
        without_target = {group.group_id for group in groups if lacks_target(group)}
        resets = [group_id for group_id, reset in shard.resets.items() if not reset.is_set]
        self._on_loaded(to_refresh, without_target.difference(to_refresh), resets)

    def _begin_sessions(self, shard: Shard) -> Iterator[int]:
        """Start the members' session timeouts, and rebalance timeouts for pending revocations.

        The shard is already served: a member may have sent a heartbeat, or left.
        """
        for group in list(shard.consumer_groups.values()):
            for member_id in list(group.entries):
                member = group.member(member_id)
                if member is not None and shard.consumer_groups.get(group.group_id) is group:
                    self._begin_session(shard, group.group_id, member)
                yield SESSION_COST
            self._arm_timers()
        for group_id in list(shard.classic_groups):
            classic = shard.classic_group(group_id)
            for classic_member in list(classic.members.values()) if classic is not None else ():
                self._begin_classic_session(shard, group_id, classic_member)
                yield SESSION_COST
            self._begin_group_deadlines(shard, group_id)
            self._check_classic_size(shard, group_id)
            self._arm_timers()

    def _begin_group_deadlines(self, shard: Shard, group_id: GroupId) -> None:
        group = shard.classic_group(group_id)
        effects = () if group is None else compute_group_deadlines_at_load(group)
        self._arm_missing(effects)

    def _arm_missing(self, effects: Iterable[ArmClassicDeadline]) -> None:
        liveness, now_ms = self._liveness, self._clock.monotonic_ms()
        for effect in effects:
            arguments = effect.group_id, effect.deadline, effect.member_id
            if not liveness.classic.is_armed(*arguments):
                liveness.arm_classic(*arguments, effect.timeout_ms, now_ms)

    def _check_classic_size(self, shard: Shard, group_id: GroupId) -> None:
        """As in ``GroupMetadataManager.onLoaded``: ``group.max.size`` may have been lowered."""
        group, size = shard.classic_group(group_id), ClassicDeadline.SIZE
        if group is not None and len(group.members) > shard.settings_of(group_id).group_max_size:
            self._liveness.arm_classic(group_id, size, MemberId(""), 0, self._clock.monotonic_ms())

    def _begin_classic_session(
        self, shard: Shard, group_id: GroupId, member: ClassicMember
    ) -> None:
        group, member_id = shard.classic_group(group_id), member.member_id
        liveness, session = self._liveness, ClassicDeadline.SESSION
        is_there = group is not None and member_id in group.members
        if is_there and liveness.classic.get(group_id, session, member_id) is None:
            timeout_ms, now_ms = member.session_timeout_ms, self._clock.monotonic_ms()
            liveness.arm_classic(group_id, session, member_id, timeout_ms, now_ms)

    def _begin_session(self, shard: Shard, group_id: GroupId, member: Member) -> None:
        liveness, now_ms = self._liveness, self._clock.monotonic_ms()
        if member.is_reserved:
            # As for a session, when it began is not in the log.
            grace_ms = shard.settings_of(group_id).group_consumer_leave_grace_ms
            if liveness.get(group_id, member.member_id) is None:
                liveness.reserve(group_id, member.member_id, grace_ms, now_ms)
            return
        self._arm_missing(compute_deadlines_at_load(group_id, member))
        if member.classic is not None:
            return
        entry = liveness.get(group_id, member.member_id)
        if entry is None:
            entry = liveness.heard(group_id, member.member_id, now_ms)
        liveness.note_loaded(entry, now_ms)
        must_give_up = member.state is MemberState.UNREVOKED_PARTITIONS and member.member_epoch >= 0
        if must_give_up and entry.rebalance is None and member.metadata is not None:
            timeout_ms = member.metadata.rebalance_timeout_ms
            liveness.arm_rebalance(
                group_id, member.member_id, member.member_epoch, timeout_ms, now_ms
            )

    def _end(self, failure: BaseException | None) -> None:
        self._stats.load_seconds = (self._clock.monotonic_ms() - self._began_ms) / 1000
        self._failure = failure
        if failure is None:
            self._on_finished()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)


class _ShardInTurn:
    """One shard being loaded, step by step."""

    def __init__(self, steps: Iterator[int]) -> None:
        self.is_loaded = False
        self._steps = steps
        self._turn_cost = TURN_SLICES * SLICE_COST
        self._turn_left = self._turn_cost

    def load(self, cost: int) -> int:
        """Load for about ``cost``; returns the actual cost."""
        spent = 0
        for step in self._steps:
            spent += step
            if spent >= cost:
                break
        else:
            self.is_loaded = True
        self._turn_left -= spent
        return spent + GROUP_COST

    def is_turn_over(self) -> bool:
        """Whether the other shards come first now; the next turn is longer."""
        if self._turn_left > 0:
            return False
        self._turn_cost *= TURN_SLICES
        self._turn_left = self._turn_cost
        return True


def lacks_target(group: ConsumerGroup) -> bool:
    """Whether the group's target is older than its epoch and must be computed."""
    return group.member_count > 0 and group.target_epoch < group.group_epoch
