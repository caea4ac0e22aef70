"""The core by hand: commands in, records replayed and kept, effects carried out or put off.

As ``coordinator.core`` asks of its caller, without a runtime. Members tell the truth about what
they own, and may be slow to hear and to acknowledge.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coordinator.core.consumer.pending_changes import has_pending_change
from coordinator.core.replay.group_records import replay
from coordinator.core.replay.prepared_targets import replay_prepared_target
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.consumer.consumer_member import LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from coordinator.core.state.outcome import (
    ArmRebalanceTimeout,
    CancelRebalanceTimeout,
    ComputeTarget,
    NoteEpochCauses,
    Outcome,
    ResolveRegexes,
)
from coordinator.core.state.shard import Shard
from coordinator.core.subscriptions.regex_resolution import InstallRegexes
from coordinator.core.target.target_assignment import (
    InstallTarget,
    compute_install,
    compute_target_problem,
)
from coordinator.core.target.target_install import Preparation, prepare_target
from coordinator.dispatch.handle import ShardCommand, handle
from model.caller import INTERNAL
from model.commands.consumer import ConsumerGroupHeartbeat, Deadline, ExpireMember, RefreshTopics
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError, UnreleasedInstanceId
from model.ids import GroupId, InstanceId, LogPartition, MemberId, TopicName
from model.log.records import ConsumerGroupMetadataKey, Record
from model.now import Now
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from model.responses.response import Response
from model.topics import Topic, TopicImage, compute_image_with, compute_image_without
from muster.assignors.registry import ASSIGNORS
from tests.support.invariants import check_group
from tests.support.members import Member
from tests.support.shadow import Shadow, describe_shadow, describe_shards
from tests.support.subscriptions import matches, names_in, regex_in, topics_of
from tests.support.virtual.server import CALLER, make_topic_id

G = GroupId("g")


class CoreDriver:
    """One shard. ``log`` has every record, in order."""

    def __init__(self) -> None:
        self.shard = Shard(LogPartition(0), CoordinatorSettings(), TopicImage())
        self.log: list[Record] = []
        self.shadow = Shadow()
        self.clients: dict[str, Member] = {}
        self.away: dict[str, Member] = {}
        """Static members that have left and may come back, or another in their place."""
        self.now_ms = 1
        self.has_timeout: set[str] = set()
        self.installs: list[tuple[InstallTarget, Preparation | None]] = []
        self.are_targets_late = False
        self.resolutions: list[InstallRegexes] = []
        self.are_regexes_late = False
        self._incarnations: dict[str, int] = {}

    # -------------------------------------------------------------------------------- commands

    def carry_out(self, command: ShardCommand) -> Response | GroupError:
        """Handle a command with all that it leads to."""
        now = Now(self.now_ms, self.now_ms)
        try:
            outcome = handle(self.shard, command, now)
        except GroupError as error:
            return error
        _check_causes(outcome)
        self._replay(outcome)
        for effect in outcome.effects:
            match effect:
                case ComputeTarget():
                    self._compute_target()
                case ResolveRegexes():
                    self._resolve_regexes()
                case ArmRebalanceTimeout(member_id=member_id):
                    self.has_timeout.add(member_id)
                case CancelRebalanceTimeout(member_id=member_id):
                    self.has_timeout.discard(member_id)
        if outcome.then is not None:
            return self.carry_out(outcome.then)
        assert outcome.response is not None
        return outcome.response

    def _replay(self, outcome: Outcome) -> None:
        if outcome.prepared is not None and outcome.records:
            replay_prepared_target(self.shard, G, outcome.records, outcome.prepared)
        for record in outcome.records:
            if outcome.prepared is None:
                replay(self.shard, record)
            self.shadow.apply(record)
            self.log.append(record)
        for _, preparation in self.installs:
            if preparation is not None:
                preparation.prepare(1)

    def _compute_target(self) -> None:
        group = self.shard.consumer_groups.get(G)
        if group is None or not group.member_count or group.target_epoch >= group.group_epoch:
            return
        problem = compute_target_problem(self.shard, group)
        command = compute_install(
            problem, np.asarray(ASSIGNORS[problem.assignor].assign(problem.problem))
        )
        if self.are_targets_late:
            self.installs.append((command, prepare_target(self.shard, command)))
        else:
            self._install(command)

    def _install(self, command: InstallTarget) -> None:
        before = len(self.log)
        self.carry_out(command)
        if len(self.log) > before:
            check_target(self.shard, self.shadow)

    def install_late(self) -> None:
        """The oldest of the targets that are late comes in, with as much as is prepared of it."""
        if not self.installs:
            return
        command, preparation = self.installs.pop(0)
        if preparation is None:
            self._install(command)
            return
        prepared = replace(command, prepared=preparation.prepared)
        now = Now(self.now_ms, self.now_ms)
        unprepared = handle(self.shard, command, now)
        assert handle(self.shard, prepared, now).records == unprepared.records
        self._install(prepared)

    def _resolve_regexes(self) -> None:
        """What the patterns of the group stand for now; it may be told late."""
        group = self.shard.consumer_groups.get(G)
        if group is None or not group.regexes:
            return
        topics = {regex: matches(regex, self.shard.image) for regex in sorted(group.regexes)}
        command = InstallRegexes(G, topics, self.shard.image.version, self.now_ms)
        if self.are_regexes_late:
            self.resolutions.append(command)
        else:
            self.carry_out(command)

    def resolve_late(self) -> None:
        """The oldest of the resolutions that are late comes in."""
        if self.resolutions:
            self.carry_out(self.resolutions.pop(0))

    # --------------------------------------------------------------------------------- members

    def join(self, name: str, names: tuple[str, ...]) -> None:
        """A new member, or one that gives everything up and joins again."""
        client = self.clients.setdefault(name, Member(G, MemberId(name), instance_of(name)))
        client.forget()
        holder = self._holder_of(client)
        answer = self._send(client, client.compose_full(names), is_heard=True)
        if isinstance(answer, UnreleasedInstanceId):
            assert holder in set(self.clients) - {name}, "S24: nobody else holds it"
            del self.clients[name]
            return
        assert not isinstance(answer, GroupError), answer
        if client.instance_id is not None:
            assert holder is None or holder == name or holder in self.away, "S24: it is held"
            self.away.pop(str(holder), None)

    def _holder_of(self, client: Member) -> str | None:
        """Who is the instance of this client, by all records of members."""
        group = self.shard.consumer_groups.get(G)
        for member in group.members() if group is not None else ():
            instance_id = member.metadata.instance_id if member.metadata is not None else None
            if instance_id is not None and instance_id == client.instance_id:
                return member.member_id
        return None

    def heartbeat(self, name: str, says_owned: bool, is_heard: bool = True) -> None:
        """A partial heartbeat; the answer may be lost, and then the next one is full."""
        client = self.clients[name]
        self._send(client, client.compose_partial(says_owned=says_owned), is_heard)

    def say_everything(self, name: str, names: tuple[str, ...], is_heard: bool = True) -> None:
        """A full heartbeat."""
        client = self.clients[name]
        self._send(client, client.compose_full(names), is_heard)

    def change_names(self, name: str, names: tuple[str, ...]) -> None:
        """Only the subscription."""
        client = self.clients[name]
        command = replace(
            client.compose_partial(),
            instance_id=None,
            subscribed_topic_names=names_in(names),
            subscribed_topic_regex=regex_in(names),
        )
        self._send(client, command, is_heard=True)

    def _send(
        self, client: Member, command: ConsumerGroupHeartbeat, is_heard: bool
    ) -> Response | GroupError:
        answer = self.carry_out(command)
        if not is_heard:
            return answer
        if isinstance(answer, GroupError):
            client.forget()
            return answer
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        client.hear(answer)
        return answer

    def revoke(self, name: str) -> None:
        """Give up what it was told to give up."""
        self.clients[name].revoke()

    def adopt(self, name: str) -> None:
        """Own what it was told to own; it gives up the rest first."""
        client = self.clients[name]
        self.revoke(name)
        for other in self.clients.values():
            if other is not client and other.epoch > 0:
                shared = other.owned & (client.told or set())
                assert not shared, f"S2: {shared} of {client} and {other}"
        client.adopt()

    def leave(self, name: str, for_a_while: bool = False) -> None:
        """For good, or, where it is a static member, for a while."""
        client = self.clients.pop(name)
        is_static = client.instance_id is not None
        epoch = STATIC_LEAVE_EPOCH if for_a_while and is_static else LEAVE_EPOCH
        before = self._held_by(client)
        answer = self.carry_out(client.compose_leave(epoch))
        self.has_timeout.discard(name)
        if epoch == STATIC_LEAVE_EPOCH and not isinstance(answer, GroupError):
            assert self._held_by(client) == before, "S24: it keeps what is assigned to it"
            self.away[name] = client

    def _held_by(self, client: Member) -> frozenset[int] | None:
        group = self.shard.consumer_groups.get(G)
        member = None if group is None else group.member(client.member_id)
        return None if member is None else frozenset(member.assigned)

    def end_session_of_away(self, name: str) -> None:
        """The session of a static member ends before it has come back."""
        client = self.away.pop(name)
        self.carry_out(ExpireMember(INTERNAL, G, client.member_id, Deadline.SESSION))
        assert self._held_by(client) is None

    def expire(self, name: str, deadline: Deadline) -> None:
        """A deadline passes; a member that it removes knows, as by its own clock."""
        client = self.clients[name]
        group = self.shard.consumer_groups.get(G)
        member = None if group is None else group.member(client.member_id)
        epoch = None if member is None else member.member_epoch
        self.carry_out(ExpireMember(INTERNAL, G, client.member_id, deadline, epoch))
        if group is not None and group.member(client.member_id) is None:
            del self.clients[name]
            self.has_timeout.discard(name)

    # ---------------------------------------------------------------------------------- topics

    def create_topic(self, name: str, partitions: int) -> None:
        """A new topic, or one in the place of an old one of the name."""
        incarnation = self._incarnations[name] = self._incarnations.get(name, -1) + 1
        topic = Topic(TopicName(name), make_topic_id(name, incarnation), partitions)
        self._change_image(compute_image_with(self.shard.image, topic))

    def grow_topic(self, name: str, by: int) -> None:
        topic = self.shard.image.by_name.get(TopicName(name))
        if topic is not None:
            grown = Topic(topic.name, topic.topic_id, topic.partitions + by)
            self._change_image(compute_image_with(self.shard.image, grown))

    def delete_topic(self, name: str) -> None:
        self._change_image(compute_image_without(self.shard.image, TopicName(name)))

    def _change_image(self, image: TopicImage) -> None:
        self.shard.image = image
        self.carry_out(RefreshTopics(INTERNAL, G))
        self._resolve_regexes()

    # -------------------------------------------------------------------------------- checking

    def check(self) -> None:
        """Invariants of the state, and S13 by a replay of its own."""
        for group in self.shard.consumer_groups.values():
            check_group(group)
            self._check_change(group)
        assert describe_shards([self.shard]) == describe_shadow(self.shadow), "S13"

    def _check_change(self, group: ConsumerGroup) -> None:
        """There is news for a member exactly if its next heartbeat would bring some.

        Less, and a session would wait for ever; more, and it would ask again and again.
        """
        now = Now(self.now_ms, self.now_ms)
        for member in group.members():
            if member.member_epoch == STATIC_LEAVE_EPOCH:
                assert member.member_id in self.away
                continue
            command = ConsumerGroupHeartbeat(CALLER, G, member.member_id, member.member_epoch)
            outcome = handle(self.shard, command, now)
            if outcome.then is not None:
                outcome = handle(self.shard, outcome.then, now)
            answer = outcome.response
            assert isinstance(answer, ConsumerGroupHeartbeatResponse)
            assert answer.has_changes == has_pending_change(self.shard, G, member.member_id), (
                f"{member.member_id}: {answer}"
            )

    def settle(self) -> None:
        """Everybody heartbeats and does as told until nothing moves: L1."""
        self.are_targets_late = False
        self.installs.clear()
        self.are_regexes_late = False
        while self.resolutions:
            self.resolve_late()
        self._resolve_regexes()
        for name in sorted(self.away):
            self.end_session_of_away(name)
        for _ in range(12):
            before = len(self.log)
            for name in sorted(self.clients):
                client = self.clients[name]
                if client.epoch == 0:
                    self.join(name, ("foo", "bar"))
                self.adopt(name)
                self.say_everything(name, self.names_of(name))
                self.adopt(name)
                self.heartbeat(name, says_owned=True)
            self.check()
            if len(self.log) == before:
                break
        else:
            raise AssertionError("L1: it goes on and on")
        for group in self.shard.consumer_groups.values():
            assert group.state().value in ("Stable", "Empty"), f"L1: {group.state()}"
            self._check_all_are_held(group)

    def _check_all_are_held(self, group: ConsumerGroup) -> None:
        """L1: every partition that somebody subscribes to is somebody's."""
        by_name = self.shard.image.by_name
        subscribed: set[TopicName] = set()
        for member in group.members():
            subscribed.update(self.topics_of(member.member_id))
        for name in sorted(subscribed):
            topic = by_name.get(name)
            if topic is not None:
                held = [
                    partition
                    for member in group.members()
                    for given in group.numbers.topic_partitions(member.assigned)
                    if given.topic_id == topic.topic_id
                    for partition in given.partitions
                ]
                assert sorted(held) == [*range(topic.partitions)], f"L1: {held} of {topic}"

    def names_of(self, name: str) -> tuple[str, ...]:
        """What the member subscribes to, as far as the group knows."""
        group = self.shard.consumer_groups.get(G)
        member = None if group is None else group.member(MemberId(name))
        if member is None or member.metadata is None:
            return ("foo", "bar")
        regex = member.metadata.subscribed_topic_regex
        return (*member.metadata.subscribed_topic_names, *([f"/{regex}"] if regex else ()))

    def topics_of(self, name: str) -> frozenset[TopicName]:
        """The topics of its names and of its pattern, as if that were always resolved."""
        return topics_of(self.names_of(name), self.shard.image)


def instance_of(name: str) -> InstanceId | None:
    """Members ``i1`` and ``i2`` are one instance, ``i``; others are none."""
    return InstanceId(name[0]) if name[1:] else None


def check_target(shard: Shard, shadow: Shadow) -> None:
    """S4, just after a target was installed: nobody gets what it does not subscribe to."""
    group = shard.consumer_groups[G]
    for member in group.members():
        names = shadow.groups[G].topics_of(member.member_id)
        for topic in group.numbers.topic_partitions(member.target or ()):
            known = shard.image.by_id.get(topic.topic_id)
            assert known is not None, f"S4: {member.member_id} gets {topic}, which is no more"
            assert known.name in names, f"S4: {member.member_id} with {names} gets {topic}"


def replay_all(log: list[Record], image: TopicImage) -> Shard:
    """A shard made anew from records."""
    shard = Shard(LogPartition(0), CoordinatorSettings(), image)
    for record in log:
        replay(shard, record)
    return shard


KEEPS_TOMBSTONES, DROPS_TOMBSTONES = 0, 0xFF


def compact(log: list[Record], first: int, end: int, drops: int) -> list[Record]:
    """The log with the window [first, end) compacted: the last record of each key stays.

    A tombstone may be dropped where nothing older of its key is left, as a cleaner does; bit
    ``index % 8`` of ``drops`` says whether it is, so that siblings go one without the other.
    """
    before = {record.key for record in log[:first]}
    last = {record.key: index for index, record in enumerate(log[first:end], first)}
    kept = [
        record
        for index, record in enumerate(log[first:end], first)
        if last[record.key] == index
        and not (drops >> (index % 8) & 1 and record.value is None and record.key not in before)
    ]
    return [*log[:first], *kept, *log[end:]]


def check_replay(core: CoreDriver, first: int, end: int, drops: int) -> None:
    """S14: a log compacted within that window comes to the same state."""
    replayed = replay_all(compact(core.log, first, end, drops), core.shard.image)
    assert describe_shards([replayed]) == describe_shards([core.shard])


def _check_causes(outcome: Outcome) -> None:
    """Each new epoch of a group says why."""
    bumped = any(
        isinstance(record.key, ConsumerGroupMetadataKey) and record.value is not None
        for record in outcome.records
    )
    noted = any(isinstance(effect, NoteEpochCauses) for effect in outcome.effects)
    assert noted or not bumped, f"an epoch without a cause: {outcome}"
