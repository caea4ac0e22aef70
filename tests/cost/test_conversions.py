"""What it costs that a group changes its type: with members, each of which has a partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator.core.replay.group_records import replay
from coordinator.core.state.conversion import AT_ONCE_MAX
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.commands.groups import PlanMigration
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import MemberId, TopicName
from model.log.records import ClassicGroupMember, GroupMetadataKey, GroupMetadataValue, Record
from muster.assignors import embedded
from tests.cost.server import CostServer, cost_server
from tests.cost.test_core import SUBSCRIPTION, G, ids
from tests.cost.turns import ATOMIC_STEPS_MAX, Counted, check_law
from tests.support.virtual.server import CALLER, REBALANCE_TIMEOUT_MS

MEMBERS: Final = CoordinatorSettings().group_max_size
"""What is left for the last two turns, the one that replays and the one that
writes, is some 3 µs for each member: of so many they take below 50 ms."""
N: Final = 300
NEW: Final = MemberId("new")


def make_classic(server: CostServer, count: int) -> None:
    """A classic group in which each member has a partition."""
    server.create(count, "foo")
    members = tuple(
        ClassicGroupMember(
            own, None, "c", "/127.0.0.1", 60_000, 45_000, SUBSCRIPTION, given(number)
        )
        for number, own in enumerate(ids(count))
    )
    value = GroupMetadataValue("consumer", 3, "range", ids(1)[0], 5, members)
    replay(server.runtime._shard_of(G), Record(GroupMetadataKey(G), value))


def given(number: int) -> bytes:
    partitions = (embedded.TopicPartitions("foo", (number,)),)
    return embedded.encode_assignment(embedded.Assignment(partitions, None), 3)


def join() -> ConsumerGroupHeartbeat:
    return ConsumerGroupHeartbeat(
        CALLER,
        G,
        NEW,
        0,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        subscribed_topic_names=(TopicName("foo"),),
        owned=(),
    )


@contextmanager
def before_upgrade(folder: Path, count: int) -> Iterator[tuple[CostServer, Command]]:
    with cost_server(folder) as server:
        make_classic(server, count)
        yield server, join()


@contextmanager
def before_downgrade(folder: Path, count: int) -> Iterator[tuple[CostServer, Command]]:
    with before_upgrade(folder, count) as (server, newcomer):
        server.call(newcomer)
        server.loop.run_for(0.5)
        yield server, ConsumerGroupLeave(CALLER, G, NEW)


def measure(
    before: Callable[[Path, int], Iterator[tuple[CostServer, Command]]], folder: Path
) -> Callable[[int], Counted]:
    runs = iter(range(100))

    def run(count: int) -> Counted:
        with before(folder / str(next(runs)), count) as (server, command):  # type: ignore[attr-defined]
            answers: list[object] = []
            counted: Counted = server.loop.count(
                lambda: server.runtime.submit(command, answers.append), lambda: bool(answers)
            )
            assert not isinstance(answers[0], GroupError), answers[0]
            return counted

    return run


@pytest.mark.parametrize("before", [before_upgrade, before_downgrade])
def test_a_conversion_is_linear_and_has_short_turns(
    before: Callable[[Path, int], Iterator[tuple[CostServer, Command]]], tmp_path: Path
) -> None:
    """Bug: it was one turn: 260 ms for 4,000 members."""
    assert N > AT_ONCE_MAX
    check_law(measure(before, tmp_path), N, MEMBERS, ATOMIC_STEPS_MAX)


OF_EACH: Final = 100
TOPICS: Final = 18_000
"""There is no limit. What is left for the turn of the first target is some 1 µs for each topic."""


def make_readers(server: CostServer, count: int) -> None:
    """A classic group, and a topic for each partition: no two members share one."""
    names = [f"t{number:06d}" for number in range(count)]
    server.create(1, "foo", *names)
    members = []
    for number, own in enumerate(ids(count // OF_EACH)):
        mine = names[number * OF_EACH : (number + 1) * OF_EACH]
        said = embedded.encode_subscription(embedded.make_subscription(mine, None, [], 3), 3)
        partitions = tuple(embedded.TopicPartitions(name, (0,)) for name in mine)
        has = embedded.encode_assignment(embedded.Assignment(partitions, None), 3)
        members.append(ClassicGroupMember(own, None, "c", "/127.0.0.1", 60_000, 45_000, said, has))
    value = GroupMetadataValue("consumer", 3, "range", ids(1)[0], 5, tuple(members))
    replay(server.runtime._shard_of(G), Record(GroupMetadataKey(G), value))


@contextmanager
def before_upgrade_of_readers(folder: Path, count: int) -> Iterator[tuple[CostServer, Command]]:
    with cost_server(folder) as server:
        make_readers(server, count)
        yield server, join()


def test_the_first_target_of_very_many_topics_has_short_turns(tmp_path: Path) -> None:
    """Bug: each topic that not all subscribe to was looked at alone, again and again: 16,000 such
    topics were the most."""
    before: Any = before_upgrade_of_readers
    check_law(measure(before, tmp_path), 12 * OF_EACH, TOPICS, ATOMIC_STEPS_MAX)


SAYING: Final = 100
"""Members below the number that is converted in slices, who say much."""


@pytest.mark.parametrize("what", ["upgrade", "downgrade", "plan"])
def test_what_members_say_counts_and_not_only_their_number(tmp_path: Path, what: str) -> None:
    """Bug: 200 members of 6,000 topics each were converted, or looked at, in one turn of 0.5 s."""
    names = [f"topic-{number}" for number in range(2_000)]

    def say(number: int) -> bytes:
        own = names[number:] + names[:number]
        return embedded.encode_subscription(embedded.make_subscription(own, None, [], 3), 3)

    with cost_server(tmp_path) as server:
        server.create(1, "foo")
        members = tuple(
            ClassicGroupMember(own, None, "c", "/127.0.0.1", 60_000, 45_000, say(number), b"")
            for number, own in enumerate(ids(SAYING))
        )
        value = GroupMetadataValue("consumer", 3, "range", ids(1)[0], 5, members)
        replay(server.runtime._shard_of(G), Record(GroupMetadataKey(G), value))
        command: Command = PlanMigration(CALLER, G) if what == "plan" else join()
        if what == "downgrade":
            server.call(command)
            server.loop.run_for(0.5)
            command = ConsumerGroupLeave(CALLER, G, NEW)
        answers: list[object] = []
        counted = server.loop.count(
            lambda: server.runtime.submit(command, answers.append), lambda: bool(answers)
        )
        assert not isinstance(answers[0], GroupError), answers[0]
        assert counted.longest <= ATOMIC_STEPS_MAX, counted
        assert counted.turns > 10
