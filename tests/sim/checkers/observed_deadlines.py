"""The real runtime, with its deadlines watched: members and offsets expire in time, not before.

Checkers L3, S17, S18.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicGroupState
from coordinator.core.state.consumer.consumer_member import STATIC_LEAVE_EPOCH
from coordinator.core.state.shard import Shard
from coordinator.runtime.commit.entries import Entry
from coordinator.runtime.runtime import Runtime
from model.commands.classic import ClassicDeadline, ExpireClassicDeadline
from model.commands.consumer import (
    Deadline,
    ExpireMember,
)
from model.commands.offsets import ExpireOffsets
from model.ids import GroupId
from model.log.records import (
    MemberState,
)
from tests.sim.checkers.before import Before
from tests.sim.checkers.classic_checkers import (
    ClassicChecker,
    check_record,
)
from tests.sim.checkers.command_checkers import (
    compute_subscription,
)
from tests.sim.checkers.liveliness import Liveliness
from tests.sim.checkers.offset_log import OffsetLog
from tests.sim.checkers.violations import check
from tests.sim.checkers.written_records import records_of
from tests.sim.tables import CLASSIC, NONE, SIMPLE, Pair

LATE_MS = 2_000
"""What a deadline may be late by."""


class ObservedDeadlines(Runtime):
    """``clock_ms`` is the world's. ``on_expired`` hears of members that a deadline removed."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.reached: Counter[Pair] = options.pop("reached")
        self.clock_ms: Callable[[], int] = options.pop("clock_ms")
        self.on_expired: Callable[[ExpireMember], None] = options.pop("on_expired")
        self.lively: Liveliness = options.pop("lively")
        self.log_offsets: Callable[[], OffsetLog] = options.pop("log_offsets")
        self.on_expiring: Callable[[ExpireOffsets], None] = options.pop("on_expiring")
        self.classic: ClassicChecker = options.pop("classic")
        super().__init__(*arguments, **options)

    # ------------------------------------------------------------------------------ what there is

    def shard_of(self, group_id: GroupId) -> Shard:
        """The shard that has the group."""
        return self._shard_of(group_id)

    def offsets_with_gathered(self) -> OffsetLog:
        """The log with what is not written yet."""
        log = self.log_offsets()
        gathered = [
            entry for entry in self.parts.writer.gathering.entries if isinstance(entry, Entry)
        ]
        if not gathered:
            return log
        log = log.copy()
        for entry in gathered:
            records: list[Any] = list(records_of(entry))
            if entry.transaction is not None:
                records.append(entry.transaction)
            log.apply(((entry.partition, record) for record in records), entry.side)
        return log

    def classic_group(self, group_id: GroupId) -> ClassicGroup | None:
        """The classic group of that id, as it is now."""
        return self._shard_of(group_id).classic_group(group_id)

    def group_state(self, group_id: GroupId) -> str:
        """The state of a group in the words of the tables."""
        shard = self._shard_of(group_id)
        group = shard.consumer_groups.get(group_id)
        if group is not None:
            return group.state().value
        classic = shard.classic_group(group_id)
        if classic is not None:
            return CLASSIC[classic.state]
        return SIMPLE if shard.has_simple_group(group_id) else NONE

    def tally_group(self, event: str, group_id: GroupId) -> None:
        self.reached["group", event, self.group_state(group_id)] += 1

    # --------------------------------------------------------------------------------- deadlines

    def note_loaded(self) -> None:
        """Sessions and rebalance timeouts begin anew at a start."""
        now_ms = self.clock_ms()
        self.classic.restart()
        # Whose join was not written is no member, and may come again under its id.
        self.lively.heard_ms.clear()
        for shard in self.shards:
            for group_id, classic in shard.classic_groups.items():
                self.tally_group("restart", group_id)
                self.lively.heard_ms.update(((group_id, m), now_ms) for m in classic.members)
        self.lively.revoking_since.clear()
        for group in self.groups():
            self.tally_group("restart", group.group_id)
            for member in group.members():
                key = (group.group_id, member.member_id)
                self.reached["member", "restart", member.state.name] += 1
                self.lively.heard_ms[key] = now_ms
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    self.lively.revoking_since[key] = (member.member_epoch, now_ms)
        for shard in self.shards:
            known = {*shard.consumer_groups, *shard.classic_groups}
            for group_id in sorted(shard.offset_groups - known):
                self.tally_group("restart", group_id)

    def check_deadlines(self, longest_session_ms: int) -> None:
        """L3: a silent member is gone soon after its timeout, one that does not revoke too."""
        now_ms, lively = self.clock_ms(), self.lively
        for group in self.groups():
            for member in group.members():
                key = (group.group_id, member.member_id)
                silent_ms = lively.compute_passed_ms(lively.heard_ms.get(key, now_ms), now_ms)
                classic = member.classic
                session_ms = longest_session_ms if classic is None else classic.session_timeout_ms
                late_ms = silent_ms - session_ms
                check(late_ms < LATE_MS, "L3", f"{key} is there after {silent_ms} ms of silence")
                epoch, since_ms = lively.revoking_since.get(key, (-1, now_ms))
                revoking_ms = lively.compute_passed_ms(since_ms, now_ms)
                late_ms = revoking_ms - lively.rebalance_timeout_ms.get(key, revoking_ms)
                entry = self.liveness.get(*key)
                if entry is not None and (entry.lease_ms or entry.promised_until_ms):
                    # Its lease, as it was when the timeout had passed, ends first.
                    late_ms -= longest_session_ms
                is_revoking = (
                    classic is None
                    and member.state is MemberState.UNREVOKED_PARTITIONS
                    and epoch == member.member_epoch != STATIC_LEAVE_EPOCH
                )
                check(
                    late_ms < LATE_MS or not is_revoking,
                    "L3",
                    f"{key} has not revoked in {revoking_ms} ms, and is there",
                )

        self._check_classic_deadlines()

    def _check_classic_deadlines(self) -> None:
        """The same of classic groups at rest, and that the others do not rebalance for ever."""
        now_ms, lively = self.clock_ms(), self.lively
        for shard in self.shards:
            groups = shard.all_classic_groups()
            self.classic.check_phases(
                groups.values(), self.settings.group_initial_rebalance_delay_ms
            )
            for group_id, group in groups.items():
                check_record(group, shard.classic_groups.get(group_id))
                if group.state is not ClassicGroupState.STABLE:
                    continue
                for member in group.members.values():
                    key = (group_id, member.member_id)
                    silent_ms = lively.compute_passed_ms(lively.heard_ms.get(key, now_ms), now_ms)
                    is_there = silent_ms < member.session_timeout_ms + LATE_MS
                    check(is_there, "L3", f"{key} is there after {silent_ms} ms of silence")

    def _check_expiring(self, command: ExpireOffsets) -> None:
        """S17, S18: what expires is old, nobody subscribes to it, and it waits for nothing."""
        group_id = command.group_id
        log, now_ms = self.offsets_with_gathered(), self._clock.now().wall_ms
        retention_ms = self.settings_of(group_id).offsets_retention_minutes * 60_000
        group = self.shard_of(group_id).consumer_groups.get(group_id)
        # That these are its last offsets has been noted of a simple group.
        state = self.group_state(group_id)
        self.reached["group", "offset expiry", SIMPLE if state == NONE else state] += 1
        subscribed: set[str] = set()
        classic = self.classic_group(group_id)
        if classic is not None and classic.members:
            is_known = classic.subscribed_topics is not None
            is_stable = classic.state is ClassicGroupState.STABLE
            check(is_known and is_stable, "S18", f"{group_id} is {classic.state}, its offsets go")
            subscribed |= classic.subscribed_topics or set()
        for member in () if group is None else group.members():
            assert group is not None
            subscribed |= compute_subscription(group, member)
        for topic, partition in command.offsets:
            place = (group_id, topic, partition)
            logged = log.visible.get(place)
            check(not log.is_waiting(place), "S17", f"{place} expires and waits for a marker")
            check(topic not in subscribed, "S18", f"{place} expires, and is subscribed to")
            since_ms = now_ms - retention_ms if logged is None else logged.commit_timestamp
            if classic is not None and classic.state is ClassicGroupState.EMPTY:
                # Also what was committed in it since, by nobody's members: Kafka's rule.
                since_ms = min(since_ms, classic.current_state_timestamp_ms or since_ms)
            age_ms = now_ms - since_ms
            check(age_ms >= retention_ms, "S18", f"{place} expires after {age_ms} ms")
        if command.removes_group:
            waits = log.waits_for_group(group_id)
            check(not waits, "S17", f"{group_id} is removed and waits for a marker")
            is_empty = (group is None or not group.member_count) and (
                classic is None or not classic.members
            )
            check(is_empty, "S18", f"{group_id} is not empty")
        self.on_expiring(command)

    def _check_classic_expiry(self, command: ExpireClassicDeadline, before: Before) -> None:
        """L3 for classic members of consumer groups."""
        key = (command.group_id, command.member_id)
        silent_ms = self.clock_ms() - self.lively.heard_ms.get(key, 0)
        is_due = command.deadline is not ClassicDeadline.SESSION or silent_ms >= before.session_ms
        check(is_due, "L3", f"{key} expired after {silent_ms} ms of silence")
        self.classic.note_gone(command.group_id, command.member_id)

    def _check_expiry(self, command: ExpireMember) -> None:
        """L3, the other way: nobody is removed before the deadline has passed."""
        key = (command.group_id, command.member_id)
        now_ms = self.clock_ms()
        if command.deadline is Deadline.SESSION:
            silent_ms = now_ms - self.lively.heard_ms[key]
            timeout_ms = self.settings_of(command.group_id).group_consumer_session_timeout_ms
            check(silent_ms >= timeout_ms, "L3", f"{key} expired after {silent_ms} ms of silence")
        else:
            epoch, since_ms = self.lively.revoking_since[key]
            timeout_ms = self.lively.rebalance_timeout_ms[key]
            check(epoch == command.member_epoch, "L3", f"{key} expired at another epoch")
            check(now_ms - since_ms >= timeout_ms, "L3", f"{key} had only {now_ms - since_ms} ms")
        self.on_expired(command)
