"""Checkers of what one command came to: S1, S3, S4, S6, S8, S10, S15, S16, S24."""

from __future__ import annotations

from typing import Any

from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.state.shard import Shard
from coordinator.runtime.api import Answer
from model.commands.consumer import LeaveGroup
from model.commands.groups import RemoveMembers
from model.commands.offsets import OffsetCommit, OffsetFetch
from model.errors import ErrorCode
from model.ids import TopicName
from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
    TopicPartitions,
)
from model.responses.offsets import OffsetFetchResponse
from tests.sim.checkers.before import Before
from tests.sim.checkers.offset_log import OffsetLog
from tests.sim.checkers.offset_model import NO_OFFSET
from tests.sim.checkers.violations import check
from tests.support.invariants import (
    legal_target_assignment,
    no_double_client_assignment,
    one_member_per_instance,
    valid_member_epoch,
    valid_partition_epoch,
    valid_stable_group_state,
)


def check_fetch(
    command: OffsetFetch, answer: Answer, log: OffsetLog, with_gathered: OffsetLog
) -> None:
    if not isinstance(answer, OffsetFetchResponse):
        return
    for topic in answer.topics:
        for row in topic.partitions:
            place = (command.group_id, str(topic.name), row.partition)
            is_unstable = row.error is ErrorCode.UNSTABLE_OFFSET_COMMIT
            waits = command.require_stable and with_gathered.is_waiting(place)
            check(waits == is_unstable, "S16", lambda p=place, r=row: f"{p} waits, but not {r}")  # type: ignore[misc]
            if not is_unstable:
                found = [found.visible.get(place) for found in (log, with_gathered)]
                allowed = [NO_OFFSET if logged is None else logged.offset for logged in found]
                if any(
                    logged is not None and with_gathered.is_of_deleted_topic(place, logged)
                    for logged in found
                ):
                    allowed.append(NO_OFFSET)
                is_so = row.offset in allowed
                check(is_so, "S15", lambda p=place, r=row, a=allowed: f"{p}: {r}, by the log {a}")  # type: ignore[misc]


def compute_subscription(group: ConsumerGroup, member: Member) -> frozenset[TopicName]:
    """What it names, and what its pattern stands for as far as that is known."""
    metadata = member.metadata
    if metadata is None:
        return frozenset()
    topics = group.resolved_regexes.get(metadata.subscribed_topic_regex or "", frozenset())
    return topics.union(metadata.subscribed_topic_names)


def check_target(shard: Shard, group: ConsumerGroup) -> None:
    """S4: a target gives nobody what does not exist or what it does not subscribe to."""
    for member in group.members():
        names = compute_subscription(group, member)
        for topic in group.numbers.topic_partitions(member.target or ()):
            known = shard.image.by_id.get(topic.topic_id)
            is_legal = known is not None and known.name in names
            if not is_legal:
                check(False, "S4", f"{member.member_id} with {names} gets {topic}")


def check_nobody_else_moved(command: Any, records: list[Record], away: str | None) -> None:
    """S3: what a member holds changes with its own commands alone.

    Or with those of the member that takes the place of ``away``.
    """
    if isinstance(command, LeaveGroup | RemoveMembers):
        # Who it names may be an instance; they go, and nobody moves.
        records = [record for record in records if record.value is not None]
    own = (
        getattr(command, "member_id", None),
        getattr(command, "new_member_id", None),
        away,
    )
    for record in records:
        if isinstance(record.key, ConsumerGroupCurrentMemberAssignmentKey):
            who = record.key.member_id
            check(who in own, "S3", f"{type(command).__name__} of {own} moved {who}")


def check_freed(
    before: Before,
    group: ConsumerGroup,
    member: Member,
    owned: tuple[TopicPartitions, ...] | None,
) -> None:
    """S3: what a member loses it has given up. S7: no epoch before that."""
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


def check_commit(command: OffsetCommit, before: Before, records: list[Record]) -> None:
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
            check(False, "S10", what)


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
            check(False, name, str(failure))
