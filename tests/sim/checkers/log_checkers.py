"""Checkers of what is written: S1, S3, S5, S6 and S13 on the records, in the order of the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from coordinator.core.state.consumer.consumer_member import STATIC_LEAVE_EPOCH
from coordinator.core.state.shard import Shard
from model.ids import MemberId
from model.log.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
)
from model.log.side_records import (
    ProducerGroupKey,
    ProducerStateKey,
    SideKey,
    SideValue,
    TopicSideKey,
    TopicSideValue,
)
from model.log.transaction_records import TransactionalOffsets
from tests.sim.checkers.offset_log import OffsetLog
from tests.sim.checkers.violations import check
from tests.support.shadow import (
    Place,
    Shadow,
    ShadowGroup,
    current_of,
    describe_shadow,
    describe_shards,
)
from tests.support.virtual.disk import Write

Member = tuple[str, str]
OffsetPlace = tuple[str, str, int]


class LogChecker:
    """Follows the log as it is written, with a naive replay of its own."""

    def __init__(self) -> None:
        self.shadow = Shadow()
        self.offsets = OffsetLog()

    def note_write(self, write: Write) -> Collection[str]:
        """After each atomic write: every record moves forwards, and the state is sound.

        The groups that it changed.
        """
        changed: dict[str, None] = {}
        self.offsets.apply(write.entries, write.side)
        for record in write.records:
            self._check_epochs(record)
            if isinstance(record.key, GroupMetadataKey):
                changed[record.key.group] = None
            self.shadow.apply(record)
            group_id = getattr(record.key, "group_id", None)
            if group_id is not None:
                changed[group_id] = None
        for group_id in changed:
            group = self.shadow.groups.get(group_id)
            is_one = group is None or group_id not in self.shadow.classic
            check(is_one, "S21", f"{group_id} is of two types")
            if group is not None:
                check_shadow_group(group_id, group)
        return changed

    def rebuild(self, writes: Iterable[Write]) -> None:
        """After a crash: what is left of the log."""
        self.shadow, self.offsets = Shadow(), OffsetLog()
        for write in writes:
            self.offsets.apply(write.entries, write.side)
            for record in write.records:
                self.shadow.apply(record)

    def _check_epochs(self, record: Record) -> None:
        """S5: epochs of a group, of its target and of a member's incarnation never decrease."""
        key, value = record
        group = self.shadow.groups.get(getattr(key, "group_id", ""))
        if group is None or value is None:
            return
        match key, value:
            case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue(epoch):
                goes_on = epoch > group.epoch or not group.is_epoch_known
                check(goes_on, "S5", f"{key.group_id}: {group.epoch} then {epoch}")
            case (
                ConsumerGroupTargetAssignmentMetadataKey(),
                ConsumerGroupTargetAssignmentMetadataValue(epoch),
            ):
                old = group.target_epoch
                goes_on = epoch > old or not group.is_target_epoch_known
                check(goes_on, "S5", f"{key.group_id}: assignment epoch {old} then {epoch}")
            case (
                ConsumerGroupCurrentMemberAssignmentKey(),
                ConsumerGroupCurrentMemberAssignmentValue(epoch),
            ):
                entry = group.entries.get(key.member_id)
                if entry is not None and entry.current is not None:
                    old = entry.current.epoch
                    is_ending = epoch == STATIC_LEAVE_EPOCH
                    # Who is away comes back as a new incarnation: its tombstones come first.
                    goes_on = epoch >= old != STATIC_LEAVE_EPOCH
                    check(
                        is_ending or goes_on,
                        "S5",
                        f"{key.member_id}: member epoch {old} then {epoch}",
                    )

    def check_live(self, shards: Sequence[Shard], when: str) -> None:
        """S13: the live state is the replay of the log."""
        live, replayed = describe_shards(shards), describe_shadow(self.shadow)
        if live != replayed:
            names = sorted(set(live) | set(replayed))
            wrong = [name for name in names if live.get(name) != replayed.get(name)]
            first = wrong[0]
            check(
                False,
                "S13",
                f"{when}: {', '.join(wrong)} differ from the replay of the log; live "
                f"{live.get(first)}, replayed {replayed.get(first)}",
            )
        self._check_transactions(shards, when)

    def _check_transactions(self, shards: Sequence[Shard], when: str) -> None:
        """S13 for what waits for markers, and for what is known of producers."""
        waiting = {
            (shard.partition, producer_id): {
                (key.group, key.topic, key.partition): epoch
                for key, epoch in transaction.epochs.items()
            }
            for shard in shards
            for producer_id, transaction in shard.open_transactions.producers()
        }
        expected = self.offsets.describe_waiting()
        check(waiting == expected, "S13", lambda: f"{when}: {waiting} wait, by the log {expected}")
        producers: dict[SideKey, SideValue] = {
            ProducerStateKey(shard.partition, producer_id): state
            for shard in shards
            for producer_id, state in shard.producers.items()
        }
        for shard in shards:
            for producer_id, groups in shard.producer_groups.items():
                for group_id, group in groups.items():
                    producers[ProducerGroupKey(shard.partition, producer_id, group_id)] = group
        known = self.offsets.producers
        check(producers == known, "S13", lambda: f"{when}: producers {producers}, not {known}")


def check_shadow_group(group_id: str, group: ShadowGroup) -> None:
    """S1, S3, S6 and S24 by the records alone."""
    instances: dict[str, str] = {}
    holders: dict[Place, str] = {}
    for member_id, entry in group.members().items():
        instance_id = None if entry.metadata is None else entry.metadata.instance_id
        if instance_id is not None:
            first = instances.setdefault(instance_id, member_id)
            check(first == member_id, "S24", f"{first} and {member_id} are both {instance_id}")
        current = entry.current
        if current is None:
            continue
        for place, epoch in (*current.assigned.items(), *current.pending.items()):
            other = holders.setdefault(place, member_id)
            if other != member_id:
                check(False, "S1", f"{group_id}: {place} is {other}'s and {member_id}'s")
            if epoch > max(current.epoch, 0):
                check(False, "S3", f"{group_id}: {place} has epoch {epoch}")
        check(not current.assigned.keys() & current.pending.keys(), "S1", f"{member_id}: both")
        check(current.epoch <= group.target_epoch, "S6", f"{group_id}: {member_id} is ahead")
    check(group.target_epoch <= group.epoch, "S6", f"{group_id}: the target is ahead")


class DurableFacts:
    """What is durable, and was at any time: what an answer may show (S11)."""

    def __init__(self) -> None:
        self.standings: dict[Member, set[tuple[int, frozenset[Place]]]] = defaultdict(set)
        self.epochs: dict[Member, set[int]] = defaultdict(set)
        self.highest: dict[Member, int] = defaultdict(int)
        """The highest epoch of each; -2 of one that has left for a while."""
        self.generations: dict[Member, set[tuple[int, bytes]]] = defaultdict(set)
        """Of members of classic groups: the assignment of each generation."""
        self.removals: dict[Member, int] = defaultdict(int)
        self.offsets: dict[OffsetPlace, set[int]] = defaultdict(set)
        self.pending: dict[OffsetPlace, set[int]] = defaultdict(set)
        """Written in a transaction."""
        self.topics: set[tuple[str, bytes, int]] = set()
        self.deleted_topics: set[str] = set()
        self._members: dict[str, set[MemberId]] = {}
        """Of classic groups, by their last records."""

    def note_sync(self, writes: Iterable[Write]) -> None:
        """These writes have become durable."""
        for write in writes:
            for record in write.records:
                self._note(record)
            for transaction in write.transactions:
                if isinstance(transaction, TransactionalOffsets):
                    self._note_pending(transaction)
            for side in write.side:
                match side.key, side.value:
                    case TopicSideKey(name), TopicSideValue(topic_id, partitions):
                        self.topics.add((name, topic_id, partitions))
                    case TopicSideKey(name), None:
                        self.deleted_topics.add(name)

    def _note_pending(self, transaction: TransactionalOffsets) -> None:
        for key, value in transaction.records:
            assert isinstance(key, OffsetCommitKey)
            assert isinstance(value, OffsetCommitValue)
            self.pending[key.group, key.topic, key.partition].add(value.offset)

    def is_visible(self, place: OffsetPlace, offset: int) -> bool:
        """Whether a commit of it is durable, plain or in a transaction."""
        return offset in self.offsets[place] or offset in self.pending[place]

    def _note_classic(self, group_id: str, value: GroupMetadataValue) -> None:
        known = {member.member_id for member in value.members}
        for member_id in self._members.get(group_id, set()) - known:
            self.removals[group_id, member_id] += 1
        self._members[group_id] = known
        for member in value.members:
            self.generations[group_id, member.member_id].add((value.generation, member.assignment))

    def _note(self, record: Record) -> None:
        key, value = record
        match key, value:
            case OffsetCommitKey(group, topic, partition), OffsetCommitValue(offset):
                self.offsets[group, topic, partition].add(offset)
            case GroupMetadataKey(group), GroupMetadataValue():
                self._note_classic(group, value)
            case ConsumerGroupMemberMetadataKey(group_id, member_id), None:
                self.removals[group_id, member_id] += 1
            case (
                ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id),
                ConsumerGroupCurrentMemberAssignmentValue(),
            ):
                current = current_of(value)
                key_of = (group_id, member_id)
                self.epochs[key_of].add(current.epoch)
                is_ending = current.epoch == STATIC_LEAVE_EPOCH
                self.highest[key_of] = (
                    current.epoch if is_ending else max(self.highest[key_of], current.epoch)
                )
                self.standings[group_id, member_id].add(
                    (current.epoch, frozenset(current.assigned))
                )
