"""What if: the answer is what then happens, through the handlers, to the real group."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace

import pytest

from coordinator.core.replay.group_records import replay
from coordinator.core.replay.shard_side_records import replay_shard_side
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.shard import Shard
from coordinator.core.target.frozen_target import compute_frozen_target
from coordinator.core.target.target_assignment import compute_install, find_target_problem
from coordinator.core.target.target_steps import ContinueMoves
from coordinator.core.whatif.changed_copy import ChangedCopy
from coordinator.core.whatif.group_copy import copy_group
from coordinator.core.whatif.question import check_what_if, compute_new_member_id
from coordinator.core.whatif.what_if import compute_answer, find_classic
from coordinator.dispatch.handle import ShardCommand, handle
from model.caller import INTERNAL, Caller
from model.commands.consumer import Deadline, ExpireMember, RefreshAssignor, RefreshTopics
from model.commands.freezes import FreezeGroup, ResumeGroup
from model.configs.assignor_configs import (
    PARTITIONS_MAX,
    AssignorConfigs,
    Pin,
    Place,
    Weight,
)
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import GroupId, InstanceId, LogPartition, MemberId, TopicName
from model.now import Now
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from model.responses.response import Response
from model.topics import Topic, TopicImage, compute_image_with
from model.what_if import WhatIf, WhatIfAnswer
from muster.assignors.registry import ASSIGNORS
from muster.assignors.rules import compute_assignment
from tests.support.members import Member
from tests.support.shadow import describe_shards
from tests.support.virtual.server import make_topic_id

G = GroupId("g")
NOW = Now(1, 1)
TOPICS = ("orders", "payments", "audit")
RACKS = ("a", "b", "c")


class Real:
    """A group whose members join, heartbeat and do as they are told, in any order."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.shard = Shard(LogPartition(0), CoordinatorSettings(), TopicImage())
        self.members: dict[str, Member] = {}
        self.targets = 0
        self.moves_left = 0

    @property
    def group(self) -> ConsumerGroup:
        return self.shard.consumer_groups[G]

    def carry_out(self, command: ShardCommand) -> Response | GroupError:
        """As the runtime does while the target is computed on a thread."""
        outcome = handle(self.shard, command, NOW)
        for record in outcome.records:
            replay(self.shard, record)
        for side in outcome.side:
            replay_shard_side(self.shard, side)
        if outcome.then is not None:
            return self.carry_out(outcome.then)
        assert outcome.response is not None
        return outcome.response

    def set_topic(self, name: str, partitions: int) -> None:
        racks = tuple(
            tuple(RACKS[(number + step) % len(RACKS)] for step in range(2))
            for number in range(partitions)
        )
        topic = Topic(TopicName(name), make_topic_id(name), partitions, racks)
        self.shard.image = compute_image_with(self.shard.image, topic)
        self.carry_out(RefreshTopics(INTERNAL, G))

    def grow_topic(self, name: str, partitions: int) -> None:
        """Nobody knows the racks of the new partitions yet."""
        topic = replace(self.shard.image.by_name[TopicName(name)], partitions=partitions)
        self.shard.image = compute_image_with(self.shard.image, topic)
        self.carry_out(RefreshTopics(INTERNAL, G))

    def set_configs(
        self, assignor: str | None, configs: AssignorConfigs, grace_ms: int | None = None
    ) -> None:
        settings = self.shard.settings_of(G)
        assignors = settings.group_consumer_assignors if assignor is None else (assignor,)
        changed = replace(
            settings,
            group_consumer_assignors=assignors,
            assignor_configs=configs,
            group_consumer_leave_grace_ms=(
                settings.group_consumer_leave_grace_ms if grace_ms is None else grace_ms
            ),
        )
        self.shard.group_settings = {G: changed}
        self.carry_out(
            RefreshAssignor(
                INTERNAL, G, settings.group_consumer_assignors, settings.assignor_configs
            )
        )

    def join(
        self,
        member_id: str,
        names: tuple[str, ...],
        client_id: str,
        instance: str | None = None,
        rack: str = "",
    ) -> None:
        member = Member(G, MemberId(member_id), InstanceId(instance) if instance else None)
        member.caller = Caller("User:test", client_id, "/127.0.0.1")
        command = member.compose_full(names)
        if rack:
            command = replace(command, rack_id=rack)
        answer = self.carry_out(command)
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        member.hear(answer)
        self.members[member_id] = member

    def leave(self, member_id: str) -> None:
        self.carry_out(self.members.pop(member_id).compose_leave())

    def end_grace(self, member_id: str) -> None:
        member = self.group.member(MemberId(member_id))
        if member is not None and member.is_reserved:
            self.carry_out(ExpireMember(INTERNAL, G, member.member_id, Deadline.SESSION))

    def settle(self) -> None:
        """Targets, heartbeats in any order, and steps of the move budget until nothing moves."""
        while True:
            self._compute_target()
            self._reconcile()
            if not self.moves_left:
                return
            self.carry_out(ContinueMoves(G))

    def _compute_target(self) -> None:
        problem = find_target_problem(self.shard, G)
        if problem is None:
            self.moves_left = 0
            return
        self.targets += 1
        if problem.is_frozen:
            self.carry_out(compute_frozen_target(problem))
            self.moves_left = 0
            return
        found = compute_assignment(ASSIGNORS[problem.assignor], problem.problem, problem.rules)
        self.carry_out(compute_install(problem, found.target, found.moves_left))
        self.moves_left = found.moves_left

    def _reconcile(self) -> None:
        for _ in range(12):
            before = describe_shards([self.shard])
            for member in self.rng.sample(list(self.members.values()), len(self.members)):
                answer = self.carry_out(member.compose_partial(says_owned=True))
                assert isinstance(answer, ConsumerGroupHeartbeatResponse)
                member.hear(answer)
                member.adopt()
            if describe_shards([self.shard]) == before:
                return
        raise AssertionError("the group does not converge")

    def owners(self) -> dict[tuple[str, int], str]:
        by_id = self.shard.image.by_id
        found: dict[tuple[str, int], str] = {
            (by_id[topic_id].name, partition): name
            for name, member in self.members.items()
            for topic_id, partition in member.owned
        }
        for name in self.group.reserved:
            for topic in self.group.numbers.topic_partitions(self.group.entries[name].assigned):
                for partition in topic.partitions:
                    found[by_id[topic.topic_id].name, partition] = name
        return found

    def names(self) -> set[str]:
        """The members, those included that have gone and are expected back."""
        return self.members.keys() | self.group.reserved


def make_group(rng: random.Random) -> Real:
    real = Real(rng)
    for name in TOPICS:
        real.set_topic(name, rng.randint(1, 9))
    for number in range(rng.randint(1, 7)):
        instance = f"i{number}" if rng.random() < 0.3 else None
        names = TOPICS if rng.random() < 0.7 else tuple(rng.sample(TOPICS, 2))
        rack = rng.choice(RACKS) if rng.random() < 0.6 else ""
        client = rng.choice(["app", "app", "tool"])
        real.join(f"m{rng.randint(0, 999):03}-{number}", names, client, instance, rack)
    budget = rng.choice([PARTITIONS_MAX, PARTITIONS_MAX, 1, 3])
    grace_ms = rng.choice([0, 30_000])
    real.set_configs(rng.choice(list(ASSIGNORS)), make_configs(rng, budget), grace_ms)
    real.settle()
    if grace_ms and len(real.members) > 1 and rng.random() < 0.5:
        real.leave(rng.choice(sorted(real.members)))
        real.settle()
    return real


def make_configs(rng: random.Random, budget: int) -> AssignorConfigs:
    pins = (Pin(Place(TopicName("orders"), 0, 0), InstanceId("i1")),) if rng.random() < 0.4 else ()
    return AssignorConfigs(
        pins, make_weights(rng), co_partition=rng.random() < 0.2, move_budget=budget
    )


def make_weights(rng: random.Random) -> tuple[Weight, ...]:
    return tuple(
        Weight(Place(TopicName(rng.choice(TOPICS)), number, number), rng.choice([0.5, 2, 7]))
        for number in range(rng.randint(0, 5))
    )


def make_question(rng: random.Random, real: Real) -> WhatIf:
    names = sorted(real.members)
    removed = rng.sample(names, rng.randint(0, min(2, len(names) - 1)))
    counts = {name: topic.partitions for name, topic in real.shard.image.by_name.items()}
    grown = rng.sample(sorted(counts), rng.choice([0, 0, 1, 2]))
    return WhatIf(
        G,
        add=rng.choice([0, 0, 1, 2, 4]),
        remove=tuple(removed),
        partitions=tuple((name, counts[name] + rng.randint(0, 6)) for name in grown),
        assignor=rng.choice([None, None, *ASSIGNORS]),
        weights=rng.choice([None, None, make_weights(rng)]),
    )


def carry_out(real: Real, question: WhatIf) -> None:
    counts = Counter(said_of(real, name) for name in real.group.entries)
    usual = max(counts, key=lambda each: counts[each])
    for name, partitions in question.partitions:
        real.grow_topic(name, partitions)
    configs = real.shard.settings_of(G).assignor_configs
    if question.weights is not None:
        configs = replace(configs, weights=question.weights)
    real.set_configs(question.assignor, configs)
    for member_id in question.remove:
        real.leave(member_id)
    for index in range(question.add):
        real.join(compute_new_member_id(G, index), *usual)
    for member_id in question.remove:
        real.end_grace(member_id)
    real.targets = 0
    real.settle()


def said_of(real: Real, name: str) -> tuple[tuple[TopicName, ...], str]:
    metadata = real.group.entries[MemberId(name)].metadata
    assert metadata is not None
    return metadata.subscribed_topic_names, metadata.client_id


def ask(shard: Shard, question: WhatIf) -> WhatIfAnswer:
    group = check_what_if(shard, question, ASSIGNORS)
    copies = deque(copy_group(shard, group), maxlen=1)
    copy = ChangedCopy(copies.pop(), question, ASSIGNORS, NOW, find_classic(group))
    *_, answer = compute_answer(copy)
    assert answer is not None
    return answer


@pytest.mark.parametrize("seed", range(200))
def test_whatif_equals_what_then_happens(seed: int) -> None:
    rng = random.Random(seed)
    real = make_group(rng)
    check_told(real, make_question(rng, real), carry_out)


@pytest.mark.parametrize("seed", range(60))
def test_whatif_of_a_frozen_group_and_of_its_resume_equals_what_then_happens(seed: int) -> None:
    rng = random.Random(seed)
    real = make_group(rng)
    real.carry_out(FreezeGroup(INTERNAL, G))
    answer = check_told(real, make_question(rng, real), carry_out)
    for move in answer.moves:
        takes_its_place = move.source is not None and move.source not in real.names()
        assert move.destination is None or takes_its_place
    check_told(real, WhatIf(G, resumes=True), resume)


def resume(real: Real, question: WhatIf) -> None:
    real.carry_out(ResumeGroup(INTERNAL, question.group_id))
    real.targets = 0
    real.settle()


def check_told(
    real: Real, question: WhatIf, change: Callable[[Real, WhatIf], None]
) -> WhatIfAnswer:
    before, state = real.owners(), describe_shards([real.shard])

    answer = ask(real.shard, question)

    assert describe_shards([real.shard]) == state, "a question changes nothing"
    change(real, question)
    after = real.owners()
    moved = {
        place: (before.get(place), after.get(place))
        for place in before.keys() | after.keys()
        if before.get(place) != after.get(place)
    }
    told = {
        (move.topic_name, move.partition): (move.source, move.destination) for move in answer.moves
    }
    assert told == moved
    counts = Counter(after.values())
    loads = {load.member_id: load.after for load in answer.loads if load.after is not None}
    assert loads == {name: counts[name] for name in real.names()}
    assert set(answer.idle) == {name for name in real.names() if not counts[name]}
    assert answer.epochs == real.targets
    assert (answer.rounds > 0) == (answer.epochs > 0)
    return answer


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (WhatIf(GroupId("other")), "other not found"),
        (WhatIf(G, remove=("nobody",)), "nobody is not a member"),
        (WhatIf(G, partitions=((TopicName("nothing"), 3),)), "no topic nothing"),
        (WhatIf(G, partitions=((TopicName("orders"), 0),)), "cannot be fewer"),
        (WhatIf(G, assignor="best"), "best is unknown; there are uniform, range"),
    ],
)
def test_what_does_not_exist_is_named(question: WhatIf, says: str) -> None:
    real = make_group(random.Random(1))
    with pytest.raises(GroupError, match=says):
        ask(real.shard, question)
