"""The real runtime, with each command watched: tallies, and the checkers S3, S7, S9, S10, L3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from coordinator.core.consumer_group import STATIC_LEAVE_EPOCH, ConsumerGroup, Member
from coordinator.core.handle import ShardCommand
from coordinator.core.invariants import (
    legal_target_assignment,
    no_double_client_assignment,
    one_member_per_instance,
    valid_member_epoch,
    valid_partition_epoch,
    valid_stable_group_state,
)
from coordinator.core.outcome import Outcome
from coordinator.core.shard import Shard
from coordinator.core.target import InstallTarget
from coordinator.runtime.api import Reply
from coordinator.runtime.runtime import Runtime
from coordinator.runtime.writer import Entry
from model.commands import (
    UNCHANGED,
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    Deadline,
    ExpireMember,
    OffsetCommit,
    OffsetFetch,
    ReconcileMember,
    RefreshTopics,
)
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, InstanceId, MemberId, TopicName
from model.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    MemberState,
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
    TopicPartitions,
)
from tests.sim.tables import NONE, SIMPLE, Pair
from tests.sim.violations import Violation, check

Owned = tuple[TopicPartitions, ...] | None


class Liveliness:
    """An independent account of who was heard from, and of who has had to revoke since when."""

    def __init__(self) -> None:
        self.heard_ms: dict[tuple[str, str], int] = {}
        self.revoking_since: dict[tuple[str, str], tuple[int, int]] = {}
        self.rebalance_timeout_ms: dict[tuple[str, str], int] = {}


class ObservedRuntime(Runtime):
    """``clock_ms`` is the world's.

    ``on_expired`` hears of members that a deadline removed, ``on_joined`` of accepted joins.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.reached: Counter[Pair] = options.pop("reached")
        self.clock_ms: Callable[[], int] = options.pop("clock_ms")
        self.on_expired: Callable[[ExpireMember], None] = options.pop("on_expired")
        self.on_joined: Callable[[ConsumerGroupHeartbeat], None] = options.pop("on_joined")
        self.lively: Liveliness = options.pop("lively")
        super().__init__(*arguments, **options)
        self._refused: GroupError | None = None
        self._carried_out: set[int] = set()
        self._appended: list[Record] = []

    def _make_parts(self, scheduler: Any) -> None:
        super()._make_parts(scheduler)
        append = self._writer.append

        def note(entry: Entry) -> None:
            self._appended += records_of(entry)
            append(entry)

        self._writer.append = note  # type: ignore[method-assign]
        fetch = self._offsets.fetch

        def tally(command: OffsetFetch, reply: Reply) -> None:
            self.tally_group("fetch", command.group_id)
            fetch(command, reply)

        self._offsets.fetch = tally  # type: ignore[method-assign]

    # -------------------------------------------------------------------------------- watching

    def touch(self, group_id: GroupId, member_id: MemberId) -> bool:
        touched = super().touch(group_id, member_id)
        if touched:
            self.lively.heard_ms[group_id, member_id] = self.clock_ms()
        return touched

    def _answer_error(
        self, group_ids: tuple[GroupId, ...], reply: Reply, error: GroupError
    ) -> None:
        self._refused = error
        super()._answer_error(group_ids, reply, error)

    def _submit_to_shard(
        self, command: ShardCommand, reply: Reply, shard: Shard | None = None
    ) -> None:
        group, member = self._find(command)
        self._tally(command, group, member)
        before = _Before(group, member, getattr(command, "instance_id", None))
        super()._submit_to_shard(command, reply, shard)
        if id(command) in self._carried_out:
            self._carried_out.remove(id(command))
            return
        error = self._refused
        assert error is not None, f"{command} was neither carried out nor refused"
        check(
            before.is_unchanged(),
            "S9",
            lambda: f"{command} was refused and changed its group: {error}",
        )
        broke = error.code is ErrorCode.UNKNOWN_SERVER_ERROR
        check(not broke, "S9", f"{type(command).__name__} broke the core: {error.message}")
        if isinstance(command, ConsumerGroupHeartbeat):
            self._check_acceptance(command, before, error)

    def _commit(self, command: OffsetCommit, reply: Reply) -> None:
        group, member = self._find(command)
        self._tally(command, group, member)
        before = _Before(group, member)
        records: list[Record] = []
        self._appended = records
        super()._commit(command, reply)
        check(bool(records) or before.is_unchanged(), "S9", lambda: f"{command} changed its group")
        _check_commit(command, before, records)

    def _carry_out(
        self,
        shard: Shard,
        group_id: GroupId,
        command: ShardCommand,
        outcome: Outcome,
        reply: Reply,
    ) -> None:
        before = _Before(*self._find(command), getattr(command, "instance_id", None))
        self._appended = []
        super()._carry_out(shard, group_id, command, outcome, reply)
        self._carried_out.add(id(command))
        self._check(command, before, self._appended)

    def _find(self, command: Any) -> tuple[ConsumerGroup | None, Member | None]:
        group = self._shard_of(command.group_id).consumer_groups.get(command.group_id)
        member_id = getattr(command, "member_id", None)
        member = None if group is None or member_id is None else group.member(member_id)
        return group, member

    # --------------------------------------------------------------------------------- tallies

    def group_state(self, group_id: GroupId) -> str:
        """The state of a group in the words of the tables."""
        shard = self._shard_of(group_id)
        group = shard.consumer_groups.get(group_id)
        if group is not None:
            return group.state().value
        return SIMPLE if group_id in shard.offset_groups else NONE

    def tally_group(self, event: str, group_id: GroupId) -> None:
        self.reached["group", event, self.group_state(group_id)] += 1

    def _tally(self, command: Any, group: ConsumerGroup | None, member: Member | None) -> None:
        if isinstance(command, ReconcileMember):
            return
        names = _event_names(command, member)
        if names is None:
            return
        member_event, group_event = names
        if group is not None and member_event == "join":
            holder, epoch = find_instance(group, command.instance_id)
            if holder is not None and epoch == STATIC_LEAVE_EPOCH:
                member_event, member = "return", group.member(MemberId(holder))
        if group_event is not None:
            self.tally_group(group_event, command.group_id)
        if member_event is not None:
            state = NONE if member is None else member.state.name
            self.reached["member", member_event, state] += 1

    # --------------------------------------------------------------------------------- checking

    def _check(self, command: Any, before: _Before, records: list[Record]) -> None:
        group, member = self._find(command)
        match command:
            case ConsumerGroupHeartbeat():
                self._check_acceptance(command, before, None)
                self._note_heard(command)
                self._check_move(command, before, group, member, command.owned)
            case ReconcileMember():
                self._check_move(command, before, group, member, command.owned)
            case InstallTarget() if records and group is not None:
                _check_target(self._shard_of(group.group_id), group)
            case ExpireMember() if before.member is not None and member is None:
                self._check_expiry(command)
            case _:
                pass
        _check_nobody_else_moved(command, records, before.away)

    def _note_heard(self, command: ConsumerGroupHeartbeat) -> None:
        key = (command.group_id, command.member_id)
        self.lively.heard_ms[key] = self.clock_ms()
        if command.member_epoch == 0:
            self.on_joined(command)
        if command.rebalance_timeout_ms is not UNCHANGED:
            self.lively.rebalance_timeout_ms[key] = command.rebalance_timeout_ms

    def _check_acceptance(
        self, command: ConsumerGroupHeartbeat, before: _Before, error: GroupError | None
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
        check(
            not allowed or error is None,
            "S9",
            f"{command.member_id} was refused with {command.member_epoch} at {before.epoch}: "
            f"{error}",
        )

    def _check_move(
        self,
        command: ConsumerGroupHeartbeat | ReconcileMember,
        before: _Before,
        group: ConsumerGroup | None,
        member: Member | None,
        owned: Owned,
    ) -> None:
        if group is None or member is None:
            return
        self._note_revoking(command, member)
        if before.member is not member:
            return
        held = {*member.assigned, *member.pending_revocation}
        freed = before.held - held
        if freed:
            said = None if owned is None else group.numbers.known_numbers(owned)
            check(
                said is not None and not said & freed,
                "S3",
                f"{member.member_id} lost {freed} without giving them up",
            )
        if member.member_epoch > before.epoch:
            target = set(member.target or ())
            check(
                held <= target,
                "S7",
                f"{member.member_id} got epoch {member.member_epoch} holding {held - target}",
            )

    def _note_revoking(self, command: Any, member: Member) -> None:
        key = (command.group_id, member.member_id)
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            self.lively.revoking_since.pop(key, None)
        elif self.lively.revoking_since.get(key, (-1, 0))[0] != member.member_epoch:
            self.lively.revoking_since[key] = (member.member_epoch, self.clock_ms())

    def note_loaded(self) -> None:
        """Sessions and rebalance timeouts begin anew at a start."""
        now_ms = self.clock_ms()
        for group in self.groups():
            self.tally_group("restart", group.group_id)
            for member in group.members():
                key = (group.group_id, member.member_id)
                self.reached["member", "restart", member.state.name] += 1
                self.lively.heard_ms[key] = now_ms
                if member.state is MemberState.UNREVOKED_PARTITIONS:
                    self.lively.revoking_since[key] = (member.member_epoch, now_ms)
        for shard in self.shards:
            for group_id in sorted(shard.offset_groups - set(shard.consumer_groups)):
                self.tally_group("restart", group_id)

    def _check_expiry(self, command: ExpireMember) -> None:
        """L3, the other way: nobody is removed before the deadline has passed."""
        key = (command.group_id, command.member_id)
        now_ms = self.clock_ms()
        if command.deadline is Deadline.SESSION:
            silent_ms = now_ms - self.lively.heard_ms[key]
            timeout_ms = self.settings.group_consumer_session_timeout_ms
            check(silent_ms >= timeout_ms, "L3", f"{key} expired after {silent_ms} ms of silence")
        else:
            epoch, since_ms = self.lively.revoking_since[key]
            timeout_ms = self.lively.rebalance_timeout_ms[key]
            check(epoch == command.member_epoch, "L3", f"{key} expired at another epoch")
            check(now_ms - since_ms >= timeout_ms, "L3", f"{key} had only {now_ms - since_ms} ms")
        self.on_expired(command)


def records_of(entry: Entry) -> list[Record]:
    """All that an entry writes, one record after the other."""
    return [
        *entry.records,
        *(
            Record(
                OffsetCommitKey(commits.group, commits.topic, offset.partition),
                OffsetCommitValue(
                    offset.offset,
                    -1,
                    offset.metadata,
                    commits.commit_timestamp,
                    topic_id=commits.topic_id,
                ),
            )
            for commits in entry.commits
            for offset in commits.offsets
        ),
    ]


class _Before:
    """A member, and its group, as they were before a command."""

    __slots__ = (
        "assigned",
        "epoch",
        "epochs",
        "group",
        "held",
        "instance",
        "member",
        "previous",
        "revision",
    )

    def __init__(
        self,
        group: ConsumerGroup | None,
        member: Member | None,
        instance_id: InstanceId | None = None,
    ) -> None:
        self.group = group
        self.member = member
        self.revision = -1 if group is None else group.revision
        self.epoch = -1 if member is None else member.member_epoch
        self.previous = -1 if member is None else member.previous_member_epoch
        self.assigned: set[int] = set() if member is None else set(member.assigned)
        self.held: set[int] = set()
        if member is not None:
            self.held = self.assigned | set(member.pending_revocation)
        # A commit may close the batch, with all that waits for it: these are of before.
        epoch_of = () if group is None else group.assignment_epoch_of
        self.epochs = {number: epoch_of[number] for number in self.held}

        self.instance = find_instance(group, instance_id)

    @property
    def away(self) -> str | None:
        """The member whose place may be taken."""
        holder, epoch = self.instance
        return holder if epoch == STATIC_LEAVE_EPOCH else None

    def allows_instance(self, command: ConsumerGroupHeartbeat) -> bool:
        """Whether who says this instance id may speak as that instance."""
        holder, _ = self.instance
        if command.instance_id is None or holder == command.member_id:
            return True
        return command.member_epoch == 0 and holder in (None, self.away)

    def is_unchanged(self) -> bool:
        return self.group is None or self.group.revision == self.revision

    def owns_only_assigned(self, owned: tuple[TopicPartitions, ...]) -> bool:
        assert self.group is not None
        numbers = self.group.numbers
        return numbers.has_all(owned) and numbers.known_numbers(owned) <= self.assigned


def find_instance(
    group: ConsumerGroup | None, instance_id: InstanceId | None
) -> tuple[str | None, int]:
    """Who is the instance, and its epoch, by what the members say of themselves."""
    if group is not None and instance_id is not None:
        for member in group.members():
            if member.metadata is not None and member.metadata.instance_id == instance_id:
                return member.member_id, member.member_epoch
    return None, 0


def _event_names(command: Any, member: Member | None) -> tuple[str | None, str | None] | None:
    """The events of the tables that a command is: of its member, of its group."""
    match command:
        case ConsumerGroupHeartbeat():
            return _heartbeat_event(command, member)
        case ConsumerGroupLeave(member_epoch=-2):
            return "leave for a while", "leave"
        case ConsumerGroupLeave():
            return "leave", "leave"
        case ExpireMember():
            event = command.deadline.value
            return (event, event) if _holds(command, member) else None
        case OffsetCommit(member_epoch=None):
            return None, "simple commit"
        case OffsetCommit():
            is_older = member is not None and command.member_epoch != member.member_epoch
            return "commit, older epoch" if is_older else "commit", "commit"
        case InstallTarget():
            return None, "target"
        case RefreshTopics():
            return None, "topics"
        case _:
            return None


def _holds(command: ExpireMember, member: Member | None) -> bool:
    if member is None:
        return False
    if command.deadline is Deadline.SESSION:
        return True
    is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
    return is_revoking and member.member_epoch == command.member_epoch


def _heartbeat_event(command: ConsumerGroupHeartbeat, member: Member | None) -> tuple[str, str]:
    if command.member_epoch == 0:
        return "join", "join"
    if member is None:
        return "heartbeat", "heartbeat"
    if command.member_epoch != member.member_epoch:
        is_previous = command.member_epoch == member.previous_member_epoch
        is_accepted = is_previous and command.owned is not None and member.member_epoch > 0
        return "previous epoch" if is_accepted else "fenced epoch", "heartbeat"
    names, metadata = command.subscribed_topic_names, member.metadata
    if names is not UNCHANGED and (
        metadata is None
        or tuple(sorted(set(names))) != metadata.subscribed_topic_names
        or command.subscribed_topic_regex not in (UNCHANGED, metadata.subscribed_topic_regex)
    ):
        return "change", "heartbeat"
    return "heartbeat" if command.owned is None else "acknowledge", "heartbeat"


def _compute_subscription(group: ConsumerGroup, member: Member) -> frozenset[TopicName]:
    """What it names, and what its pattern stands for as far as that is known."""
    metadata = member.metadata
    if metadata is None:
        return frozenset()
    topics = group.resolved_regexes.get(metadata.subscribed_topic_regex or "", frozenset())
    return topics.union(metadata.subscribed_topic_names)


def _check_target(shard: Shard, group: ConsumerGroup) -> None:
    """S4: a target gives nobody what does not exist or what it does not subscribe to."""
    for member in group.members():
        names = _compute_subscription(group, member)
        for topic in group.numbers.topic_partitions(member.target or ()):
            known = shard.image.by_id.get(topic.topic_id)
            is_legal = known is not None and known.name in names
            if not is_legal:
                raise Violation("S4", f"{member.member_id} with {names} gets {topic}")


def _check_nobody_else_moved(command: Any, records: list[Record], away: str | None) -> None:
    """S3: what a member holds changes with its own commands alone.

    Or with those of the member that takes the place of ``away``.
    """
    member_id = getattr(command, "member_id", None)
    for record in records:
        if isinstance(record.key, ConsumerGroupCurrentMemberAssignmentKey):
            check(
                record.key.member_id in (member_id, away),
                "S3",
                f"{type(command).__name__} of {member_id} moved {record.key.member_id}",
            )


def _check_commit(command: OffsetCommit, before: _Before, records: list[Record]) -> None:
    """S10: the current epoch, or held since the epoch that is given."""
    if before.group is None or not records or command.member_epoch is None:
        return
    check(before.member is not None, "S10", f"a commit of {command.member_id}, which is no member")
    if command.member_epoch == before.epoch:
        return
    numbers = before.group.numbers
    for key, value in records:
        assert isinstance(key, OffsetCommitKey)
        assert isinstance(value, OffsetCommitValue)
        number = numbers.numbers_of(value.topic_id, (key.partition,))[0]
        assigned_at = before.epochs.get(number, before.epoch)
        if not assigned_at <= command.member_epoch < before.epoch:
            what = f"{command.member_id} committed {key} at {command.member_epoch}"
            raise Violation("S10", what)


_LIVE_CHECKS = (
    ("S1", no_double_client_assignment),
    ("S3", valid_partition_epoch),
    ("S4", legal_target_assignment),
    ("S6", valid_member_epoch),
    ("S8", valid_stable_group_state),
    ("S24", one_member_per_instance),
)


def check_live_group(group: ConsumerGroup) -> None:
    """S1, S3, S4, S6 and S8 of the live state, after each write that changed the group."""
    for name, holds in _LIVE_CHECKS:
        try:
            holds(group)
        except AssertionError as failure:
            raise Violation(name, str(failure)) from failure
