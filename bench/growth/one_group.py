"""Cases of one group: by its members, by its partitions, and of a classic group by its members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, cycle, islice
from pathlib import Path

from bench.growth.requests import (
    encode,
    make_commit,
    make_fetch,
    make_heartbeat,
    make_join,
    make_leave,
)
from bench.growth.rig import Rig, rig
from bench.growth.states import GROUP, NOW_MS, make_group, make_member_id, make_store, make_topic
from bench.growth.timing import BATCH, STEADY_ROUNDS, Case
from model.commands.classic import JoinGroup, JoinProtocol, MemberAssignment, SyncGroup
from model.commands.offsets import COMMIT_PARTITIONS_MAX
from model.ids import GroupId, MemberId
from model.log.records import (
    ClassicGroupMember,
    GroupMetadataKey,
    GroupMetadataValue,
    Record,
)
from muster.assignors import embedded
from tests.support.virtual.server import CALLER

PARTITIONED_MEMBERS = 100
"""Members of the group on very many partitions."""

FOLLOWERS = 200
TOGETHER = 100
"""Requests in flight on one connection, fewer than a turn takes."""

_TOPIC = "t"
_PROTOCOL = "range"
_GENERATION = 3
_SESSION_MS, _REBALANCE_MS = 45_000, 60_000


class Joins:
    """Members that join a group one at a time, and leave it."""

    def __init__(self, server: Rig) -> None:
        self._server = server
        self._numbers = count()
        self._joined: list[str] = []
        self._next = b""

    def prepare(self) -> None:
        member = f"joined-{next(self._numbers)}"
        self._joined.append(member)
        self._next = make_join(GROUP, member, (_TOPIC,))
        self._server.end_cooldown()

    def join(self) -> int:
        self._server.send(self._next)
        self._server.settle()
        return 1

    def prepare_leave(self) -> None:
        self._next = make_leave(GROUP, self._joined.pop())
        self._server.end_cooldown()


def make_member_cases(size: int, folder: Path) -> Iterator[Case]:
    """A group of `size` members with a partition each."""
    topic = make_topic(_TOPIC, size)
    store = make_store(folder / "store", [topic], make_group(GROUP, size, topic))
    with rig(folder, store) as server:
        yield make_heartbeats(server, GROUP, spread(size))
        yield make_commits(
            server,
            (
                make_commit(GROUP, topic.topic_id, [(number, 7)], make_member_id(number))
                for number in repeat_to(spread(size), TOGETHER)
            ),
        )
        yield Case("describe", lambda: send(server, [encode_describe()]))
        joins = Joins(server)
        yield Case("join", joins.join, joins.prepare)
        yield make_follow_case(server, joins, size)
        yield Case("leave", joins.join, joins.prepare_leave)


def make_partition_cases(size: int, folder: Path) -> Iterator[Case]:
    """A group of a hundred members on a topic of `size` partitions."""
    topic = make_topic(_TOPIC, size)
    store = make_store(folder / "store", [topic], make_group(GROUP, PARTITIONED_MEMBERS, topic))
    with rig(folder, store) as server:
        yield make_heartbeats(server, GROUP, spread(PARTITIONED_MEMBERS))
        joins = Joins(server)
        yield Case("join", joins.join, joins.prepare)
        yield Case("leave", joins.join, joins.prepare_leave)
        commits = Commits(server, topic.topic_id, size)
        if size <= COMMIT_PARTITIONS_MAX:
            yield Case("commit", commits.commit, commits.prepare)
        else:
            commits.prepare()
            commits.commit()
        yield Case("fetch", lambda: send(server, [make_fetch("committed")]))


class Commits:
    """Commits of all partitions of a topic, in as few requests as they fit into."""

    def __init__(self, server: Rig, topic_id: bytes, partitions: int) -> None:
        self._server = server
        self._topic_id = topic_id
        self._partitions = partitions
        self._offsets = count(1)
        self._frames: list[bytes] = []

    def prepare(self) -> None:
        offset = next(self._offsets)
        self._frames = [
            make_commit(
                "committed",
                self._topic_id,
                [(n, offset) for n in range(at, min(at + COMMIT_PARTITIONS_MAX, self._partitions))],
                "",
                -1,
            )
            for at in range(0, self._partitions, COMMIT_PARTITIONS_MAX)
        ]

    def commit(self) -> int:
        send(self._server, self._frames)
        return 1


def send(server: Rig, frames: list[bytes]) -> int:
    """Send requests one after the other; returns their number."""
    for data in frames:
        server.send(data)
    return len(frames)


def spread(size: int, most: int = BATCH) -> range:
    """At most so many members, from the whole group."""
    return range(0, size, max(1, size // most))


def repeat_to(numbers: range, count: int) -> list[int]:
    """The numbers, again and again if they are fewer."""
    return list(islice(cycle(numbers), max(count, len(numbers))))


def make_heartbeats(server: Rig, group_id: GroupId, members: range) -> Case:
    """Members of the group in turn, at its epoch, often enough to be timed."""

    def make_frames() -> list[bytes]:
        group = server.find_group(group_id)
        found = [group.member(make_member_id(number)) for number in members]
        return [
            make_heartbeat(group_id, member.member_id, member.member_epoch)
            for member in found
            if member is not None
        ]

    # The first heartbeat brings a member to the epoch, the second one gets the cached response.
    for _ in range(2):
        send(server, make_frames())
    frames = make_frames() * max(1, BATCH // len(members))
    return Case("heartbeat", lambda: send(server, frames), rounds=STEADY_ROUNDS)


def make_commits(server: Rig, commits: Iterable[bytes]) -> Case:
    """Commits that arrive together, as many as share a write."""
    left = iter(commits)
    batches = []
    while taken := list(islice(left, TOGETHER)):
        batches.append((b"".join(taken), len(taken)))
    return Case("commit", lambda: sum(server.send_together(*batch) for batch in batches))


def encode_describe() -> bytes:
    return encode("ConsumerGroupDescribe", group_ids=(GROUP,), include_authorized_operations=False)


def make_follow_case(server: Rig, joins: Joins, size: int) -> Case:
    """Members hear of a new target that does not affect them, and move to its epoch."""
    frames: list[bytes] = []

    def prepare() -> None:
        joins.prepare()
        joins.join()
        group = server.find_group(GROUP)
        frames.clear()
        for number in spread(size, FOLLOWERS):
            member = group.member(make_member_id(number))
            assert member is not None
            frames.append(make_heartbeat(GROUP, member.member_id, member.member_epoch))

    return Case("follow", lambda: send(server, frames), prepare)


# -------------------------------------------------------------------------------- classic groups


def make_classic_cases(size: int, folder: Path) -> Iterator[Case]:
    """A classic group of `size` members."""
    members = [make_member_id(number) for number in range(size)]
    subscription = embedded.encode_subscription(
        embedded.make_subscription((_TOPIC,), None, [], 3), 3
    )
    assignment = embedded.encode_assignment(embedded.Assignment((), None), 3)
    value = GroupMetadataValue(
        "consumer",
        _GENERATION,
        _PROTOCOL,
        members[0],
        NOW_MS,
        tuple(
            ClassicGroupMember(
                member,
                None,
                "c",
                "/127.0.0.1",
                _REBALANCE_MS,
                _SESSION_MS,
                subscription,
                assignment,
            )
            for member in members
        ),
    )
    topic = make_topic(_TOPIC, 1)
    store = make_store(folder / "store", [topic], [Record(GroupMetadataKey(GROUP), value)])
    with rig(folder, store) as server:
        frames = [
            encode(
                "Heartbeat",
                group_id=GROUP,
                generation_id=_GENERATION,
                member_id=members[number],
                group_instance_id=None,
            )
            for number in spread(size)
        ]
        frames *= max(1, BATCH // len(frames))
        yield Case("heartbeat", lambda: send(server, frames), rounds=STEADY_ROUNDS)
        yield Case("rebalance", lambda: rebalance(server, members, subscription, assignment))


def rebalance(server: Rig, members: list[MemberId], subscription: bytes, assignment: bytes) -> int:
    """All members join again, and get their assignments; per rebalance."""
    protocols = (JoinProtocol(_PROTOCOL, subscription),)
    server.server.call_all(
        JoinGroup(
            CALLER, GROUP, member, MemberId("new"), _SESSION_MS, _REBALANCE_MS, "consumer",
            protocols, None,
        )
        for member in members
    )  # fmt: skip
    group = server.server.runtime._shard_of(GROUP).classic_group(GROUP)
    assert group is not None
    given = tuple(MemberAssignment(member, assignment) for member in members)
    server.server.call_all(
        SyncGroup(CALLER, GROUP, member, group.generation, given if member == group.leader else ())
        for member in members
    )
    return 1
