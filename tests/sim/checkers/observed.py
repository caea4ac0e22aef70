"""The real runtime, with each command watched: tallies, and the checkers S3, S7, S9, S10."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import STATIC_LEAVE_EPOCH, Member
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.target.target_assignment import InstallTarget
from coordinator.dispatch.command_table import Route
from coordinator.dispatch.handle import ShardCommand
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.commit.entries import Entry
from model.commands.classic import ExpireClassicDeadline, JoinGroup
from model.commands.command import TransactionCommand
from model.commands.consumer import (
    UNCHANGED,
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    ExpireMember,
    LeaveGroup,
    ReconcileMember,
)
from model.commands.groups import RemoveMembers
from model.commands.offsets import ExpireOffsets, OffsetCommit, OffsetFetch
from model.commands.transactions import AbortTransaction, TxnOffsetCommit, WriteTxnMarkers
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, MemberId
from model.log.records import (
    MemberState,
    Record,
    TopicPartitions,
)
from tests.sim.checkers.before import Before, find_instance, is_of_now
from tests.sim.checkers.classic_checkers import (
    Change,
    check_classic_commit,
    decode_owned,
)
from tests.sim.checkers.command_checkers import (
    check_commit,
    check_fetch,
    check_freed,
    check_nobody_else_moved,
    check_target,
)
from tests.sim.checkers.frozen_groups import check_frozen, find_frozen_targets
from tests.sim.checkers.guarded_stores import GuardedStores
from tests.sim.checkers.observed_deadlines import ObservedDeadlines
from tests.sim.checkers.offset_log import OffsetLog
from tests.sim.checkers.offset_model import OffsetPlace
from tests.sim.checkers.violations import check
from tests.sim.checkers.written_records import records_of
from tests.sim.conversions import (
    Kind,
    check_conversion,
    check_mixed,
    compute_targets,
    find_conversion,
)
from tests.sim.events import event_names
from tests.sim.tables import NONE

Owned = tuple[TopicPartitions, ...] | None

LEAVING = (ConsumerGroupLeave, LeaveGroup, RemoveMembers)
ENDING = (*LEAVING, ExpireMember, ExpireClassicDeadline, JoinGroup)
"""What may bring a consumer group to its end."""

REFUSED_BY_SETTINGS = (ErrorCode.UNSUPPORTED_ASSIGNOR, ErrorCode.GROUP_MAX_SIZE_REACHED)
"""An administrator may change those of a group."""


class ObservedRuntime(ObservedDeadlines):
    """``on_joined`` hears of accepted joins, ``on_removed`` of members that were removed."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.on_removed: Callable[[GroupId, MemberId], None] = options.pop("on_removed")
        self.on_joined: Callable[[ConsumerGroupHeartbeat], None] = options.pop("on_joined")
        self.stores: GuardedStores = options.pop("stores")
        self.on_converted: Callable[[Kind, str, tuple[Record, ...]], None] = options.pop(
            "on_converted"
        )
        self.on_timed_out: Callable[[AbortTransaction, Mapping[OffsetPlace, int], Reply], Reply]
        self.on_timed_out = options.pop("on_timed_out")
        super().__init__(*arguments, **options)
        self._refused: GroupError | None = None
        self._carried_out: set[int] = set()
        self._in_slices: dict[int, ShardCommand] = {}
        """Conversions that are under way."""
        self._is_whole = True
        self._appended: list[Record] = []

    def _make_parts(self, scheduler: Any) -> None:
        super()._make_parts(scheduler)
        parts: Any = self.parts
        append = parts.writer.append

        def note(entry: Entry) -> None:
            self._appended += records_of(entry)
            append(entry)

        parts.writer.append = note
        self._answer_unseen = parts.context.answer
        # The context is a value to everybody else.
        object.__setattr__(parts.context, "answer", self._answer)
        self._submit_unseen, parts.groups.submit = parts.groups.submit, self._submit_seen
        self._settle_unseen, parts.groups.settle = parts.groups.settle, self._settle_seen
        self._apply_unseen, parts.apply.outcome = parts.apply.outcome, self._apply_seen
        self._watch_offsets()
        self._routes |= {
            Route.SHARD: self._submit_seen,
            Route.COMMIT: partial(self._commit, self._routes[Route.COMMIT]),
        }

    def _watch_offsets(self) -> None:
        fetch, change = self._routes[Route.FETCH], self._routes[Route.TRANSACTION]

        def tally(command: OffsetFetch, reply: Reply) -> None:
            self.tally_group("fetch", command.group_id)
            self._fetch_exactly(fetch, command, reply)

        def tally_change(command: TransactionCommand, reply: Reply) -> None:
            if isinstance(command, TxnOffsetCommit):
                self.tally_group("transactional commit", command.group_id)
            elif isinstance(command, WriteTxnMarkers):
                self._tally_marker(command)
            elif isinstance(command, AbortTransaction):
                producer = command.partition, command.producer_id
                waiting = self.offsets_with_gathered().waiting.get(producer, {})
                offsets = {place: logged.offset for place, (logged, _) in waiting.items()}
                reply = self.on_timed_out(command, offsets, reply)
            change(command, reply)

        self._routes |= {Route.FETCH: tally, Route.TRANSACTION: tally_change}

    # --------------------------------------------------------------------------------- offsets

    def _tally_marker(self, command: WriteTxnMarkers) -> None:
        shard = self.shards[command.partition]
        transaction = shard.open_transactions.get(command.producer_id)
        event = "commit marker" if command.committed else "abort marker"
        groups = () if transaction is None else {key.group for key in transaction.epochs}
        for group_id in sorted(groups):
            self.tally_group(event, group_id)

    def _fetch_exactly(
        self, fetch: Callable[[OffsetFetch, Reply], None], command: OffsetFetch, reply: Reply
    ) -> None:
        """S13, S15: it says what the log has, at the moment at which it is read."""
        expected: list[tuple[OffsetLog, OffsetLog]] = []
        answered: list[Answer] = []

        def look_and_reply(answer: Answer) -> None:
            answered.append(answer)
            if expected:
                check_fetch(command, answer, *expected[0])
            reply(answer)

        fetch(command, look_and_reply)
        log, all_of_it = self.log_offsets(), self.offsets_with_gathered()
        if answered:
            check_fetch(command, answered[0], log, all_of_it)
        else:
            expected.append((log.copy(), all_of_it.copy()))

    # -------------------------------------------------------------------------------- watching

    def submit(self, command: Any, reply: Reply) -> None:
        super().submit(command, self.stores.watch(command, reply))

    def touch(self, group_id: GroupId, member_id: MemberId) -> bool:
        touched = super().touch(group_id, member_id)
        if touched:
            self.lively.heard_ms[group_id, member_id] = self.clock_ms()
        return touched

    def _answer(self, group_ids: tuple[GroupId, ...], reply: Reply, answer: Answer) -> None:
        if isinstance(answer, GroupError):
            self._refused = answer
        self._answer_unseen(group_ids, reply, answer)

    def _submit_seen(self, command: ShardCommand, reply: Reply, shard: Shard | None = None) -> None:
        group, member = self._find(command)
        self._tally(command, group, member)
        before = Before(group, member, getattr(command, "instance_id", None))
        classic = self.classic_group(command.group_id)
        self._refused = None
        self._submit_unseen(command, reply, shard)
        if id(command) in self._carried_out:
            self._carried_out.remove(id(command))
            return
        error = self._refused
        if error is None and command.group_id in self.parts.turns._held:
            self._in_slices[id(command)] = command
            return
        assert error is not None, f"{command} was neither carried out nor refused"
        is_unchanged = before.is_unchanged() and classic is self.classic_group(command.group_id)
        what = f"{type(command).__name__} was refused and changed its group: {error}"
        check(is_unchanged, "S9", what)
        broke = error.code is ErrorCode.UNKNOWN_SERVER_ERROR
        check(not broke, "S9", f"{type(command).__name__} broke the core: {error.message}")
        if isinstance(command, ConsumerGroupHeartbeat) and (classic is None or not classic.members):
            self._check_acceptance(command, before, error)

    def _settle_seen(
        self, shard: Shard, command: ShardCommand, reply: Reply, compute: Callable[[], Outcome]
    ) -> None:
        self._settle_unseen(shard, command, reply, compute)
        if self._in_slices.pop(id(command), None) is not None:
            self._carried_out.discard(id(command))

    def _commit(
        self, commit: Callable[[OffsetCommit, Reply], None], command: OffsetCommit, reply: Reply
    ) -> None:
        group, member = self._find(command)
        self._tally(command, group, member)
        before = Before(group, member)
        records: list[Record] = []
        self._appended = records
        self._refused = None
        commit(command, reply)
        classic = None if group is not None else self.classic_group(command.group_id)
        if records and classic is not None and command.member_id in classic.members:
            # Who commits in a classic group is alive.
            self.lively.heard_ms[command.group_id, command.member_id] = self.clock_ms()
        check(bool(records) or before.is_unchanged(), "S9", lambda: f"{command} changed its group")
        check_commit(command, before, records)
        check_classic_commit(command, self.classic_group(command.group_id), records)

    def _apply_seen(
        self, shard: Shard, command: ShardCommand, outcome: Outcome, reply: Reply
    ) -> None:
        group_id = command.group_id
        before = Before(*self._find(command), getattr(command, "instance_id", None))
        if isinstance(command, ExpireOffsets):
            self._check_expiring(command)
        classic = self.classic_group(group_id)
        group = before.group
        targets = compute_targets(group) if isinstance(command, ENDING) else {}
        had_group = group is not None and group.member_count > 0
        frozen = find_frozen_targets(shard, group_id)
        self._appended = []
        self._is_whole = outcome.then is None
        removable = self._find_members(group_id) if isinstance(command, RemoveMembers) else set()
        self._apply_unseen(shard, command, outcome, reply)
        for member_id in sorted(removable - self._find_members(group_id)):
            self.on_removed(group_id, member_id)
        self._carried_out.add(id(command))
        change = Change(
            command,
            shard,
            outcome,
            classic,
            self.classic_group(group_id),
            had_group,
            shard.consumer_groups.get(group_id),
        )
        check_frozen(shard, group_id, frozen)
        self.classic.check(change)
        check_mixed(change)
        kind = find_conversion(change)
        if kind is not None:
            check_conversion(kind, change, targets)
            self.classic.note_converted(change)
            self.on_converted(kind, group_id, outcome.records)
        self._check(command, before, self._appended, kind)

    def _find_members(self, group_id: GroupId) -> set[MemberId]:
        group = self._shard_of(group_id).consumer_groups.get(group_id)
        if group is not None:
            return {each.member_id for each in group.members()}
        classic = self.classic_group(group_id)
        return set() if classic is None else set(classic.members)

    def _find(self, command: Any) -> tuple[ConsumerGroup | None, Member | None]:
        group = self._shard_of(command.group_id).consumer_groups.get(command.group_id)
        member_id = getattr(command, "member_id", None)
        member = None if group is None or member_id is None else group.member(member_id)
        return group, member

    # --------------------------------------------------------------------------------- tallies

    def _tally(self, command: Any, group: ConsumerGroup | None, member: Member | None) -> None:
        if isinstance(command, ReconcileMember):
            return
        names = event_names(command, member)
        if names is None:
            return
        member_event, group_event = names
        if group is not None and member_event == "join":
            holder, epoch = find_instance(group, command.instance_id)
            if holder is not None and epoch == STATIC_LEAVE_EPOCH:
                member_event, member = "return", group.member(MemberId(holder))
        if group_event is not None:
            self.tally_group(group_event, command.group_id)
            if group_event == "join" and command.group_id in self.parts.targets._in_flight:
                self.tally_group("join while a target is computed", command.group_id)
        if member_event is not None:
            state = NONE if member is None else member.state.name
            self.reached["member", member_event, state] += 1

    # --------------------------------------------------------------------------------- checking

    def _check(
        self, command: Any, before: Before, records: list[Record], kind: Kind | None
    ) -> None:
        group, member = self._find(command)
        match command:
            case ConsumerGroupHeartbeat() if kind is not None:
                self._note_heard(command)
                return
            case ConsumerGroupHeartbeat():
                self._check_acceptance(command, before, None)
                self._note_heard(command)
                self._check_move(command, before, group, member, command.owned)
            case ReconcileMember():
                self._check_move(command, before, group, member, command.owned)
            case InstallTarget() if records and group is not None:
                check_target(self._shard_of(group.group_id), group)
            case ExpireMember() if before.member is not None and member is None:
                self._check_expiry(command)
            case ExpireClassicDeadline() if before.member is not None and member is None:
                self._check_classic_expiry(command, before)
            case JoinGroup() if (
                group is not None and member is not None and member is before.member
            ):
                owned = decode_owned(command, self._shard_of(group.group_id).image)
                check_freed(before, group, member, owned)
            case _:
                pass
        if kind is None:
            check_nobody_else_moved(command, records, before.replaced_by(command))

    def _note_heard(self, command: ConsumerGroupHeartbeat) -> None:
        if command.by_server:
            return
        key = (command.group_id, command.member_id)
        self.lively.heard_ms[key] = self.clock_ms()
        if command.member_epoch == 0:
            self.on_joined(command)
        if command.rebalance_timeout_ms is not UNCHANGED:
            self.lively.rebalance_timeout_ms[key] = command.rebalance_timeout_ms

    def _check_acceptance(
        self, command: ConsumerGroupHeartbeat, before: Before, error: GroupError | None
    ) -> None:
        """S9: the current epoch, 0, or the one before with nothing owned that is not assigned.

        S24: by nobody else than the member that is the instance, unless that is away.
        """
        allowed = before.allows_instance(command)
        if before.member is None or before.epoch == STATIC_LEAVE_EPOCH:
            allowed &= command.member_epoch == 0
        elif command.member_epoch not in (0, before.epoch):
            is_previous = command.member_epoch == before.previous and command.owned is not None
            allowed &= is_previous and before.owns_only_assigned(command.owned or ())
        check(
            allowed or error is not None,
            "S9",
            f"{command.member_id} was accepted with {command.member_epoch} at {before.epoch}",
        )
        by_settings = error is not None and error.code in REFUSED_BY_SETTINGS
        check(
            not allowed or error is None or by_settings,
            "L4" if command.member_epoch == 0 else "S9",
            f"{command.member_id} was refused with {command.member_epoch} at {before.epoch}: "
            f"{error}",
        )

    def _check_move(
        self,
        command: ConsumerGroupHeartbeat | ReconcileMember,
        before: Before,
        group: ConsumerGroup | None,
        member: Member | None,
        owned: Owned,
    ) -> None:
        if group is None or member is None:
            return
        self._note_revoking(command, before, member)
        if before.member is not member:
            return
        if command.owned is not None and before.pending and member.member_epoch == before.epoch:
            given = group.numbers.known_numbers(command.owned)
            waits = before.pending & set(member.pending_revocation)
            is_answered = is_of_now(command, before) and self._is_whole
            check(
                not is_answered or bool(given & before.pending) or not waits,
                "L5",
                f"{member.member_id} has given up {before.pending}, and {waits} are awaited",
            )
        check_freed(before, group, member, owned)

    def _note_revoking(self, command: Any, before: Before, member: Member) -> None:
        """A revocation begins with another epoch, or where one before it was acknowledged."""
        key = (command.group_id, member.member_id)
        since = self.lively.revoking_since.get(key, (-1, 0))
        has_given_up = bool(before.pending - set(member.pending_revocation))
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            self.lively.revoking_since.pop(key, None)
        elif since[0] != member.member_epoch or has_given_up:
            self.lively.revoking_since[key] = (member.member_epoch, self.clock_ms())
