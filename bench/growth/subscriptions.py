"""Cases of regular expressions and topics: by the expressions of a group, and by all topics."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from bench.growth.one_group import make_heartbeats, send, spread
from bench.growth.requests import make_heartbeat, make_join, make_metadata
from bench.growth.rig import Rig, rig
from bench.growth.states import (
    GROUP,
    make_group,
    make_member_id,
    make_regex_group,
    make_store,
    make_topic,
)
from bench.growth.timing import BATCH, STEADY_ROUNDS, Case
from model.caller import INTERNAL
from model.commands.topics import CreateTopic
from model.ids import GroupId

TOPICS = 100
"""Topics in the cases by regular expressions."""

REGEXES = 10
"""Regular expressions of the group in the cases by topics."""


def make_regex(number: int) -> str:
    """Matches the topic of the same number, and those whose name begins with it and a dot."""
    return rf"t{number:06}(\..*)?"


def make_regex_cases(size: int, folder: Path) -> Iterator[Case]:
    """A group whose `size` members have an expression each, and a hundred topics."""
    topics = [make_topic(f"t{number:06}", 1) for number in range(TOPICS)]
    regexes = (make_regex(number) for number in range(size))
    store = make_store(folder / "store", topics, make_regex_group(GROUP, regexes))
    with rig(folder, store) as server:
        first = make_heartbeat(GROUP, make_member_id(0))
        yield Case("resolve", lambda: resolve(server, first), rounds=1)
        yield make_heartbeats(server, GROUP, spread(size))
        yield make_topic_case(server)


def resolve(server: Rig, heartbeat: bytes) -> int:
    """The first heartbeat after a start has all expressions resolved."""
    group = server.find_group(GROUP)
    server.send(heartbeat)
    server.server.loop.run_while(lambda: not group.resolved_regexes)
    server.settle()
    return 1


def make_topic_case(server: Rig) -> Case:
    """A topic is created that one expression matches, until the group has its target."""
    numbers = count()
    group = server.find_group(GROUP)

    def create() -> int:
        epoch = group.group_epoch
        topic = make_topic(f"t{0:06}.{next(numbers)}", 1)
        server.call(CreateTopic(INTERNAL, topic.name, topic.topic_id, topic.partitions))
        server.server.loop.run_while(lambda: group.group_epoch == epoch)
        server.settle()
        return 1

    return Case("create", create, server.end_cooldown, rounds=3)


def make_topics_cases(size: int, folder: Path) -> Iterator[Case]:
    """A server with `size` topics of a partition; a group of ten expressions, each for ten."""
    topics = [make_topic(f"t{number:06}", 1) for number in range(size)]
    records = [
        *make_regex_group(GROUP, (rf"t0000{number}\d(\..*)?" for number in range(REGEXES))),
        *make_group(GroupId("named"), 1, topics[0]),
    ]
    store = make_store(folder / "store", topics, records)
    with rig(folder, store) as server:
        resolve(server, make_heartbeat(GROUP, make_member_id(0)))
        beats = [make_heartbeat("named", make_member_id(0))] * BATCH
        yield Case("heartbeat", lambda: send(server, beats), rounds=STEADY_ROUNDS)
        yield make_begin_case(server)
        yield make_topic_case(server)
        one = [make_metadata(topics[number].name) for number in spread(size, 200)]
        yield Case("metadata", lambda: send(server, one), rounds=STEADY_ROUNDS)
        whole = [make_metadata(None)]
        yield Case("all metadata", lambda: send(server, whole))


def make_begin_case(server: Rig) -> Case:
    """A new group begins, whose only member has a new expression that matches ten topics."""
    numbers = count()

    def begin() -> int:
        number = next(numbers)
        group_id = GroupId(f"new-{number}")
        # Each round has an expression that nobody had before.
        regex = rf"t00000\d(\.{number})?"
        server.send(make_join(group_id, "m", regex=regex))
        group = server.find_group(group_id)
        server.server.loop.run_while(lambda: not group.resolved_regexes)
        server.settle(group_id)
        return 1

    return Case("resolve", begin)
