"""Cases of a server with many groups, and the start of a real server on their store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from bench.growth.one_group import TOGETHER, make_commits, repeat_to, send, spread
from bench.growth.requests import encode, make_commit, make_heartbeat, make_join
from bench.growth.rig import Rig, rig
from bench.growth.states import make_group, make_member_id, make_store, make_topic
from bench.growth.timing import BATCH, STEADY_ROUNDS, Case, Figure, read_cpu_us, read_memory_bytes
from model.ids import GroupId
from model.topics import compute_image_of
from storage.log_store import LogStore
from tests.server import MusterServer

_TOPIC = "t"
_MEMBER = make_member_id(0)


def make_groups_store(size: int, folder: Path) -> LogStore:
    """`size` groups of a member, all on the same topic of one partition."""
    topic = make_topic(_TOPIC, 1)
    image = compute_image_of((topic,))
    records = (
        record
        for number in range(size)
        for record in make_group(GroupId(f"g{number}"), 1, topic, image)
    )
    return make_store(folder / "data" / "store", [topic], records)


def make_group_cases(size: int, folder: Path) -> Iterator[Case | Figure]:
    """`size` groups, of which requests take turns; then a start."""
    topic = make_topic(_TOPIC, 1)
    with rig(folder, make_groups_store(size, folder)) as server:
        groups = [f"g{number}" for number in spread(size)]
        beats = [make_heartbeat(group, _MEMBER) for group in groups] * max(1, BATCH // len(groups))
        send(server, beats)
        yield Case("heartbeat", lambda: send(server, beats), rounds=STEADY_ROUNDS)
        commits = (
            make_commit(f"g{number}", topic.topic_id, [(0, 7)], _MEMBER)
            for number in repeat_to(spread(size), TOGETHER)
        )
        yield make_commits(server, commits)
        yield make_begin_case(server)
        listing = [encode("ListGroups", states_filter=(), types_filter=())]
        yield Case("list", lambda: send(server, listing))
    yield from measure_start(folder)


def make_begin_case(server: Rig) -> Case:
    """The first member of a new group joins, and gets its target."""
    numbers = count()

    def begin() -> int:
        for _ in range(20):
            group_id = GroupId(f"new-{next(numbers)}")
            server.send(make_join(group_id, "m", (_TOPIC,)))
            server.settle(group_id)
        return 20

    return Case("begin", begin)


def measure_start(folder: Path) -> Iterator[Figure]:
    """CPU and resident memory of `muster serve` when it has loaded all groups."""
    with MusterServer(folder / "data") as server:
        yield Figure("start", read_cpu_us(server.pid))
        yield Figure("memory", read_memory_bytes(server.pid))
