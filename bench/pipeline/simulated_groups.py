"""Simulates the history of groups from a seed: members come and go, and every record is written.

A group writes what a coordinator would: a target before a member moves, and partitions are revoked
before others get them. So an audit finds no violation, and a report has something to show: most
groups are stable, a few rebalance all the time, some members revoke late, some groups end empty.
"""

from __future__ import annotations

import random
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from model.ids import GroupId, MemberId, TopicId, TopicName
from model.log.records import (
    AssignedTopicPartitions,
    ClassicGroupMember,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberState,
    RecordKey,
    RecordValue,
    TopicPartitions,
)
from muster.assignors.embedded import (
    PROTOCOL_TYPE,
    Assignment,
    encode_assignment,
    encode_subscription,
    group_partitions,
    make_subscription,
)
from storage.codec.record_codec import encode_key, encode_value

CONSUMER, CLASSIC, SIMPLE = "consumer", "classic", "simple"
_KINDS = (CONSUMER, CLASSIC, SIMPLE)
_SHARES = (70, 15, 15)
_PARTITION_COUNTS = (4, 8, 16, 32)
_GROUPS_OF_TOPIC = 50
_MOST_MEMBERS = 8
_MOST_CHANGES = 600
_SHARE_GONE, _SHARE_SLOW = 0.04, 0.02
_NOTHING: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic that some groups read. ``rate`` is messages per second and partition."""

    name: TopicName
    topic_id: TopicId
    partitions: int
    rate: float


@dataclass(frozen=True, slots=True)
class Write:
    """Records written at once, at a time (wall-clock ms)."""

    time_ms: int
    records: tuple[tuple[bytes, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Life:
    """A group and all its records except offsets, which it commits until ``end_ms``."""

    group: GroupId
    kind: str
    topic: Topic
    writes: tuple[Write, ...]
    start_ms: int
    end_ms: int


def make_topics(groups: int, seed: int) -> list[Topic]:
    """One topic for every 50 groups."""
    chance = random.Random(f"topics {seed}")
    return [
        Topic(
            TopicName(f"events.{number:05}"),
            TopicId(chance.randbytes(16)),
            chance.choice(_PARTITION_COUNTS),
            chance.uniform(0.5, 20),
        )
        for number in range(max(1, groups // _GROUPS_OF_TOPIC))
    ]


def simulate_group(number: int, topic: Topic, seed: int, start_ms: int, end_ms: int) -> Life:
    """Simulate one group between two times; the same numbers give the same group."""
    chance = random.Random(f"group {seed} {number}")
    (kind,) = chance.choices(_KINDS, _SHARES)
    group = GroupId(f"group-{number:07}")
    # In the first fifth of the time, more of them early.
    born_ms = start_ms + int(0.2 * chance.random() ** 2 * (end_ms - start_ms))
    if kind == SIMPLE:
        return Life(group, kind, topic, (), born_ms, end_ms)
    is_gone = chance.random() < _SHARE_GONE
    last_ms = end_ms - int(chance.uniform(0, 0.2) * (end_ms - start_ms)) if is_gone else end_ms
    story: _ConsumerStory | _ClassicStory
    if kind == CONSUMER:
        story = _ConsumerStory(group, topic, chance, born_ms)
    else:
        story = _ClassicStory(group, topic, chance, born_ms)
    most = min(_MOST_MEMBERS, topic.partitions)
    for _ in range(chance.randrange(1, most + 1)):
        story.join()
    changes = min(_MOST_CHANGES, int(chance.paretovariate(1.0)) - 1)
    times = sorted(chance.randrange(born_ms, last_ms) for _ in range(changes))
    for time_ms in times:
        story.pass_time(time_ms)
        count = len(story.members)
        if count < most and (count < 2 or chance.random() < 0.5):
            story.join()
        else:
            story.leave()
    if is_gone:
        story.pass_time(last_ms)
        while story.members:
            story.leave()
    writes = tuple(write for write in story.writes if write.time_ms < end_ms)
    return Life(group, kind, topic, writes, born_ms, last_ms)


class _Story:
    """Common to both kinds of groups: a clock, and members with their partitions."""

    def __init__(self, group: GroupId, topic: Topic, chance: random.Random, time_ms: int) -> None:
        self.group = group
        self.topic = topic
        self.chance = chance
        self.time_ms = time_ms
        self.writes: list[Write] = []
        self.members: dict[MemberId, set[int]] = {}
        self.is_slow = chance.random() < _SHARE_SLOW
        self.epoch = 0

    def pass_time(self, until_ms: int) -> None:
        """Continue at this time, or when the last change is done if that is later."""
        self.time_ms = max(self.time_ms + 1, until_ms)

    def wait(self) -> None:
        """Wait for a member's next heartbeat; long for a slow group."""
        most_ms = 40 * 60_000 if self.is_slow and self.chance.random() < 0.2 else 3_000
        self.time_ms += self.chance.randrange(20, most_ms)

    def write(self, *records: tuple[RecordKey, RecordValue | None]) -> None:
        encoded = tuple(
            (encode_key(key), None if value is None else encode_value(value))
            for key, value in records
        )
        self.writes.append(Write(self.time_ms, encoded))

    def new_member_id(self) -> MemberId:
        return MemberId(f"{self.chance.getrandbits(128):032x}")

    def share_with(self, member_id: MemberId) -> dict[MemberId, set[int]]:
        """The partitions that the fullest members give to a new member."""
        taken: dict[MemberId, set[int]] = {}
        fair = self.topic.partitions // (len(self.members) + 1)
        counts = {other: len(held) for other, held in self.members.items()}
        for _ in range(fair if self.members else 0):
            fullest = max(counts, key=counts.__getitem__)
            counts[fullest] -= 1
            given = taken.setdefault(fullest, set())
            given.add(max(self.members[fullest] - given))
        return taken

    def share_out(self, partitions: set[int]) -> dict[MemberId, set[int]]:
        """Distribute the partitions of a former member to the emptiest members."""
        given: dict[MemberId, set[int]] = {}
        counts = {other: len(held) for other, held in self.members.items()}
        for partition in sorted(partitions if self.members else ()):
            emptiest = min(counts, key=counts.__getitem__)
            counts[emptiest] += 1
            given.setdefault(emptiest, set()).add(partition)
        return given


class _ConsumerStory(_Story):
    def __init__(self, group: GroupId, topic: Topic, chance: random.Random, time_ms: int) -> None:
        super().__init__(group, topic, chance, time_ms)
        self.epochs: dict[int, int] = {}
        self.reached: dict[MemberId, int] = {}

    def join(self) -> None:
        """A member joins, the fullest members revoke, and the new member gets its partitions."""
        joining = self.new_member_id()
        taken = self.share_with(joining)
        wanted = set().union(*taken.values()) if taken else set()
        if not self.members:
            wanted = set(range(self.topic.partitions))
        self.epoch += 1
        targets = {other: self.members[other] - given for other, given in taken.items()}
        targets[joining] = wanted
        self.reached[joining] = 0
        is_free = not taken
        held = wanted if is_free else set()
        for partition in held:
            self.epochs[partition] = self.epoch
        self.write(
            (ConsumerGroupMemberMetadataKey(self.group, joining), self.describe_member()),
            *self.new_epoch(targets),
            self.stand(
                joining, MemberState.STABLE if is_free else MemberState.UNRELEASED_PARTITIONS, held
            ),
        )
        for other in list(self.members):
            self.wait()
            given = taken.get(other, set())
            self.members[other] -= given
            if given:
                self.write(
                    self.stand(other, MemberState.UNREVOKED_PARTITIONS, self.members[other], given)
                )
                self.wait()
            self.write(self.stand(other, MemberState.STABLE, self.members[other]))
        self.members[joining] = wanted
        if not is_free:
            for partition in wanted:
                self.epochs[partition] = self.epoch
            self.wait()
            self.write(self.stand(joining, MemberState.STABLE, wanted))

    def leave(self) -> None:
        """A member leaves, and the emptiest members get its partitions."""
        leaving = self.chance.choice(sorted(self.members))
        left = self.members.pop(leaving)
        given = self.share_out(left)
        self.epoch += 1
        del self.reached[leaving]
        targets = {other: self.members[other] | more for other, more in given.items()}
        self.write(
            (ConsumerGroupCurrentMemberAssignmentKey(self.group, leaving), None),
            (ConsumerGroupTargetAssignmentMemberKey(self.group, leaving), None),
            (ConsumerGroupMemberMetadataKey(self.group, leaving), None),
            *self.new_epoch(targets),
        )
        for other in self.members:
            self.wait()
            for partition in given.get(other, ()):
                self.epochs[partition] = self.epoch
            self.members[other] |= given.get(other, set())
            self.write(self.stand(other, MemberState.STABLE, self.members[other]))

    def describe_member(self) -> ConsumerGroupMemberMetadataValue:
        return ConsumerGroupMemberMetadataValue(
            None, None, "app", "/10.0.0.7", (self.topic.name,), None, 300_000, "uniform"
        )

    def new_epoch(
        self, targets: dict[MemberId, set[int]]
    ) -> list[tuple[RecordKey, RecordValue | None]]:
        group, topic_id = self.group, self.topic.topic_id
        records: list[tuple[RecordKey, RecordValue | None]] = [
            (ConsumerGroupMetadataKey(group), ConsumerGroupMetadataValue(self.epoch, 1))
        ]
        for member_id, partitions in targets.items():
            topics = (TopicPartitions(topic_id, tuple(sorted(partitions))),) if partitions else ()
            value = ConsumerGroupTargetAssignmentMemberValue(topics)
            records.append((ConsumerGroupTargetAssignmentMemberKey(group, member_id), value))
        done = ConsumerGroupTargetAssignmentMetadataValue(self.epoch, self.time_ms)
        records.append((ConsumerGroupTargetAssignmentMetadataKey(group), done))
        return records

    def stand(
        self,
        member_id: MemberId,
        state: MemberState,
        assigned: AbstractSet[int],
        pending: AbstractSet[int] = _NOTHING,
    ) -> tuple[RecordKey, RecordValue]:
        before = self.reached[member_id]
        epoch = before if state == MemberState.UNREVOKED_PARTITIONS else self.epoch
        self.reached[member_id] = epoch
        value = ConsumerGroupCurrentMemberAssignmentValue(
            epoch, before, int(state), self.show_held(assigned), self.show_held(pending)
        )
        return ConsumerGroupCurrentMemberAssignmentKey(self.group, member_id), value

    def show_held(self, partitions: AbstractSet[int]) -> tuple[AssignedTopicPartitions, ...]:
        if not partitions:
            return ()
        numbers = tuple(sorted(partitions))
        epochs = tuple(self.epochs[number] for number in numbers)
        return (AssignedTopicPartitions(self.topic.topic_id, numbers, epochs),)


class _ClassicStory(_Story):
    """Each generation is one record, written when the leader has assigned."""

    def join(self) -> None:
        joining = self.new_member_id()
        for other, given in self.share_with(joining).items():
            self.members[other] -= given
        held = set().union(*self.members.values()) if self.members else set()
        self.members[joining] = set(range(self.topic.partitions)) - held
        self.write_generation()

    def leave(self) -> None:
        leaving = self.chance.choice(sorted(self.members))
        left = self.members.pop(leaving)
        for other, more in self.share_out(left).items():
            self.members[other] |= more
        self.write_generation()

    def write_generation(self) -> None:
        self.wait()
        self.epoch += 1
        name = self.topic.name
        subscription = encode_subscription(make_subscription([name]), 3)
        members = tuple(
            ClassicGroupMember(
                member_id,
                None,
                "app",
                "/10.0.0.7",
                300_000,
                45_000,
                subscription,
                encode_assignment(
                    Assignment(group_partitions([(name, number) for number in sorted(held)])), 3
                ),
            )
            for member_id, held in self.members.items()
        )
        value = GroupMetadataValue(
            PROTOCOL_TYPE,
            self.epoch,
            "range" if members else None,
            members[0].member_id if members else None,
            self.time_ms,
            members,
        )
        self.write((GroupMetadataKey(self.group), value))
