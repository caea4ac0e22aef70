"""Everything kept for a group, a member or a topic is dropped when that is removed."""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import FunctionType, MethodType

import pytest

from coordinator.runtime.loop.stats import Stats
from model.caller import INTERNAL
from model.commands.classic import JoinGroup, JoinProtocol
from model.commands.groups import DeleteGroup
from model.commands.offsets import DeleteOffsets
from model.commands.topics import DeleteTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, MemberId, TopicName
from tests.support.memory import MemoryLogStore
from tests.support.virtual.scheduler import VirtualScheduler
from tests.support.virtual.server import CALLER, VirtualServer

TIMES = 100
SETTINGS = CoordinatorSettings(
    offsets_retention_minutes=1,
    offsets_retention_check_interval_ms=5_000,
    group_consumer_regex_batch_refresh_min_interval_ms=1,
    group_consumer_regex_refresh_interval_ms=10_000,
)
_NOT_THE_RUNTIMES = (MemoryLogStore, VirtualScheduler, FunctionType, MethodType, Stats, type)
_BOUNDED_OTHERWISE = ("RegexMatches.", "_Known.", "BeginTimes.")
"""What patterns match is a cache with a bound of its own (``test_regexes``), and so are the times
of rebalances that began now (``test_begin_times``)."""
_OWN = ("coordinator", "model", "muster", "storage", "tests", "translator")


def measure(root: object) -> Counter[str]:
    """The number of elements in each container reachable from here, by access path."""
    sizes: Counter[str] = Counter()
    seen: set[int] = set()
    left: list[tuple[str, object]] = [(type(root).__name__, root)]
    while left:
        way, thing = left.pop()
        if id(thing) in seen or isinstance(thing, (*_NOT_THE_RUNTIMES, str, bytes)):
            continue
        seen.add(id(thing))
        if isinstance(thing, Mapping):
            sizes[way] += len(thing)
            left += [(f"{way}[]", value) for value in thing.values()]
        elif isinstance(thing, array):
            sizes[way] += len(thing)
        elif isinstance(thing, set | frozenset | list | deque | tuple):
            sizes[way] += len(thing)
            left += [(f"{way}[]", value) for value in thing]
        elif type(thing).__module__.split(".")[0] in _OWN:
            left += [(f"{type(thing).__name__}.{name}", value) for name, value in _fields(thing)]
    return sizes


def _fields(thing: object) -> list[tuple[str, object]]:
    names = [
        name
        for kind in type(thing).__mro__
        for name in _as_tuple(kind.__dict__.get("__slots__", ()))
        if name not in ("__dict__", "__weakref__")
    ]
    found = [(name, getattr(thing, name)) for name in names if hasattr(thing, name)]
    return [*found, *getattr(thing, "__dict__", {}).items()]


def _as_tuple(names: str | Collection[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


# ----------------------------------------------------------------------------- what comes and goes


def groups(server: VirtualServer, number: int) -> None:
    group = f"g{number}"
    joined = server.join(group, "m", ["kept"])
    server.ask(server.commit_command(group, "m", joined.member_epoch, "kept", {0: 1}))
    server.leave(group, "m")
    server.ask(DeleteGroup(CALLER, GroupId(group)))


def groups_with_large_targets(server: VirtualServer, number: int) -> None:
    group = f"g{number}"
    server.join(group, "m", ["large"])
    server.advance(100)
    server.leave(group, "m")
    server.ask(DeleteGroup(CALLER, GroupId(group)))


def groups_with_patterns(server: VirtualServer, number: int) -> None:
    group = f"g{number}"
    command = server.join_command(group, "m", [])
    server.beat(replace(command, subscribed_topic_regex=f"k.*|{number}"))
    server.advance(20)
    server.leave(group, "m")
    server.ask(DeleteGroup(CALLER, GroupId(group)))


def members(server: VirtualServer, number: int) -> None:
    member = f"m{number}"
    command = server.join_command("churn", member, ["kept"])
    server.beat(replace(command, rack_id=f"rack-{number}"))
    server.leave("churn", member)


def what_a_member_says(server: VirtualServer, number: int) -> None:
    command = server.join_command("steady", "m", ["kept"])
    server.beat(replace(command, rack_id=f"rack-{number}"))


def simple_groups_that_somebody_was_about_to_join(server: VirtualServer, number: int) -> None:
    group = f"s{number}"
    server.ask(server.commit_command(group, "", None, "kept", {0: 1}))
    join = JoinGroup(
        CALLER,
        GroupId(group),
        None,
        MemberId(f"{group}-1"),
        6_000,
        6_000,
        "consumer",
        (JoinProtocol("range", b""),),
    )
    server.submit(join)
    server.settle()
    server.ask(DeleteOffsets(CALLER, GroupId(group), ((TopicName("kept"), (0,)),)))


def topics(server: VirtualServer, number: int) -> None:
    name = f"x{number}"
    server.create(name, 3)
    server.advance(50)
    server.ask(DeleteTopic(INTERNAL, TopicName(name)))
    server.advance(50)


def topics_of_a_pattern(server: VirtualServer, number: int) -> None:
    name = f"p{number}"
    server.create(name, 3)
    server.advance(50)
    server.ask(DeleteTopic(INTERNAL, TopicName(name)))
    server.advance(50)


KINDS = (
    groups,
    groups_with_large_targets,
    groups_with_patterns,
    members,
    what_a_member_says,
    simple_groups_that_somebody_was_about_to_join,
    topics,
    topics_of_a_pattern,
)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_goes_leaves_nothing(kind: Callable[[VirtualServer, int], None]) -> None:
    server = VirtualServer({"kept": 4, "large": 30_000}, settings=SETTINGS)
    command = server.join_command("patterns", "m", [])
    server.beat(replace(command, subscribed_topic_regex="p.*"))
    server.join("named", "m", ["kept", *(f"x{number}" for number in range(TIMES))])
    server.join("steady", "m", ["kept"])
    server.join("churn", "m", ["kept"])
    server.advance(100)
    for number in range(TIMES // 10):
        kind(server, number)
    _beat_until_gone(server)
    before = measure(server.runtime)
    for number in range(TIMES // 10, TIMES):
        kind(server, number)
    _beat_until_gone(server)
    after = measure(server.runtime)
    grown = {
        way: (before[way], size)
        for way, size in after.items()
        if size > before[way] + 50 and not way.startswith(_BOUNDED_OTHERWISE)
    }
    assert not grown


def _beat_until_gone(server: VirtualServer) -> None:
    """Run longer than all deadlines and retention periods, with members that stay."""
    for _ in range(12):
        for group in server.runtime.groups():
            for member in group.members():
                server.ask(server.heartbeat(group.group_id, member.member_id, member.member_epoch))
        server.advance(10_000)
