"""Loading in slices: a shard is served once it is loaded, while others still load.

A slice is one record here, and takes 10 ms.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from coordinator.core.state.group_epochs import LONGEST_INTERVAL_MS
from coordinator.runtime.loading import loading
from coordinator.runtime.loading.loading import Loading
from coordinator.runtime.loop.slices import Paced
from coordinator.runtime.runtime import Runtime
from model.caller import INTERNAL
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupLeave
from model.commands.groups import ConsumerGroupDescribe, DescribeGroups, ListGroups
from model.commands.topics import CreateTopic, GrowTopic
from model.commands.transactions import WriteTxnMarkers
from model.errors import ErrorCode
from model.ids import GroupId, LogPartition, MemberId, ProducerId, TopicName
from model.responses.groups import (
    ConsumerGroupDescribeResponse,
    DescribeGroupsResponse,
    ListGroupsResponse,
)
from storage.log_store import LatestEntry, StoreCorrupt
from tests.support.memory import MemoryLogStore
from tests.support.shadow import describe_shards
from tests.support.targets_in_threads import never_quick
from tests.support.virtual.server import CALLER, VirtualServer, error_name, make_topic_id

SLICE_MS = 10
REFUSED = "COORDINATOR_LOAD_IN_PROGRESS"
MANY = 80
SMALL, LARGE = "b", "a"
"""Groups of different shards, of which the first has few records and the second many."""


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    load = Loading._load_in_slices

    def load_slowly(loader: Loading) -> Paced[None]:
        yield SLICE_MS
        for _ in load(loader):
            yield SLICE_MS

    monkeypatch.setattr(Loading, "_load_in_slices", load_slowly)
    monkeypatch.setattr(loading, "SLICE_COST", 1)


class SlowServer(VirtualServer):
    """Two groups with an offset each on disk, and a process that loads them slowly."""

    def __init__(self) -> None:
        super().__init__({"foo": 4})
        self.join(SMALL, "m", ["foo"])
        for number in range(MANY):
            self.join(LARGE, f"m{number}", ["foo"])
        self.advance(LONGEST_INTERVAL_MS)
        for group in (SMALL, LARGE):
            *_, newest = self.group(group).members()
            commit = self.commit_command(
                group, newest.member_id, newest.member_epoch, "foo", {0: 7}
            )
            assert error_name(self.ask(commit)) == "NONE"
        self.expected = describe_shards(self.runtime.shards)

    def start_slowly(self) -> None:
        """Start a process that has loaded nothing yet."""
        self.crash()
        self.runtime = Runtime(
            self.store,
            self.settings,
            clock=self.scheduler,
            scheduler=self.scheduler,
            on_failure=self.failures.append,
        )
        self.runtime.begin_load()

    def load_until_served(self, group: str) -> None:
        """Run slices until a fetch of the group is answered."""
        for _ in range(10_000):
            if error_name(self.ask(self.fetch_command(group, "foo", (0,)))) != REFUSED:
                return
            assert not self.runtime.ready()
            self.advance(SLICE_MS)
        raise AssertionError(f"{group} was never served")

    def load_all(self) -> None:
        for _ in range(10_000):
            if self.runtime.ready():
                return
            self.advance(SLICE_MS)
        raise AssertionError("it never got ready")


@pytest.fixture
def server() -> SlowServer:
    server = SlowServer()
    server.start_slowly()
    return server


def commands_of(server: SlowServer, group: str) -> Iterator[Command]:
    """One command of each kind that names a group."""
    yield server.heartbeat(group, "m", 2)
    yield server.join_command(group, "new", ["foo"])
    yield ConsumerGroupLeave(CALLER, GroupId(group), MemberId("m"))
    yield server.commit_command(group, "", None, "foo", {1: 8})
    yield server.fetch_command(group, "foo", (0,))


def test_commands_of_a_group_are_refused_until_its_shard_is_loaded(server: SlowServer) -> None:
    for command in commands_of(server, SMALL):
        assert error_name(server.ask(command)) == REFUSED
    partition = server.runtime.partition_of(GroupId(SMALL))
    marker = WriteTxnMarkers(CALLER, partition, ProducerId(1), 0, True, 0)
    assert error_name(server.ask(marker)) == REFUSED
    server.load_until_served(SMALL)
    assert server.fetch(SMALL, "foo", 0) == 7
    assert server.beat(server.heartbeat(SMALL, "m", 2)).member_epoch == 2


def test_what_was_refused_left_nothing(server: SlowServer) -> None:
    for group in (SMALL, LARGE):
        for command in commands_of(server, group):
            server.ask(command)
    server.load_all()
    assert describe_shards(server.runtime.shards) == server.expected
    assert server.runtime.stats.records_written == 0


def test_other_shards_are_served_while_one_is_loading(server: SlowServer) -> None:
    server.load_until_served(SMALL)
    assert not server.runtime.ready()
    assert error_name(server.ask(server.fetch_command(LARGE, "foo", (0,)))) == REFUSED
    server.join(SMALL, "n", ["foo"])
    server.ask(server.commit_command(SMALL, "", None, "foo", {1: 9}))
    assert server.runtime.stats.records_written > 0
    server.load_all()
    assert server.fetch(LARGE, "foo", 0) == 7
    live = describe_shards(server.runtime.shards)
    server.restart()
    server.load_all()
    assert describe_shards(server.runtime.shards) == live


def test_a_list_waits_for_all_and_a_description_for_its_groups(server: SlowServer) -> None:
    assert error_name(server.ask(ListGroups(CALLER))) == REFUSED
    server.load_until_served(SMALL)
    assert error_name(server.ask(ListGroups(CALLER))) == REFUSED
    ids = (GroupId(LARGE), GroupId(SMALL), GroupId(LARGE))
    described = server.ask(ConsumerGroupDescribe(CALLER, ids))
    assert isinstance(described, ConsumerGroupDescribeResponse)
    loading_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert [(group.group_id, group.error, len(group.members)) for group in described.groups] == [
        (LARGE, loading_code, 0),
        (SMALL, ErrorCode.NONE, 1),
        (LARGE, loading_code, 0),
    ]
    classic = server.ask(DescribeGroups(CALLER, ids))
    assert isinstance(classic, DescribeGroupsResponse)
    assert [group.error for group in classic.groups] == [
        loading_code,
        ErrorCode.GROUP_ID_NOT_FOUND,
        loading_code,
    ]
    server.load_all()
    listed = server.ask(ListGroups(CALLER))
    assert isinstance(listed, ListGroupsResponse)
    assert {group.group_id for group in listed.groups} == {SMALL, LARGE}


def test_half_a_group_is_never_seen(server: SlowServer) -> None:
    sizes = set()
    while not server.runtime.ready():
        sizes.update(group.member_count for group in server.runtime.groups())
        server.advance(SLICE_MS)
    assert sizes <= {1, MANY}


def test_a_crash_at_any_point_of_the_load_changes_nothing(server: SlowServer) -> None:
    server.load_all()
    slices = server.scheduler.now_ms // SLICE_MS
    for after in range(0, slices, 7):
        server.start_slowly()
        server.advance(after * SLICE_MS)
    server.start_slowly()
    server.load_all()
    assert describe_shards(server.runtime.shards) == server.expected
    assert server.runtime.stats.records_written == 0


def test_sessions_begin_when_the_shard_is_loaded(
    server: SlowServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    timeout_ms = server.settings.group_consumer_session_timeout_ms
    server.load_until_served(SMALL)
    # The large shard takes longer than a session.
    with monkeypatch.context() as slower:
        slower.setattr(f"{__name__}.SLICE_MS", timeout_ms // 10)
        server.load_until_served(LARGE)
    assert server.group(LARGE).member_count == MANY
    server.load_all()
    server.advance(timeout_ms - 10_000)
    assert server.group(LARGE).member_count == MANY
    server.advance(20_000)
    assert server.group(LARGE).member_count == 0


def test_a_target_that_was_under_way_is_computed_after_the_load() -> None:
    server = SlowServer()
    never_quick(server.runtime)
    server.scheduler.computing_ms = lambda: 10_000
    server.join(LARGE, "late", ["foo"])
    epoch = server.group(LARGE).group_epoch
    assert server.group(LARGE).target_epoch < epoch
    server.start_slowly()
    server.load_all()
    server.advance(LONGEST_INTERVAL_MS)
    assert server.group(LARGE).target_epoch == server.group(LARGE).group_epoch == epoch


def test_a_topic_that_grows_during_the_load_reaches_every_group(server: SlowServer) -> None:
    server.load_until_served(SMALL)
    server.ask(GrowTopic(INTERNAL, TopicName("foo"), 30))
    server.load_all()
    server.advance(SLICE_MS)
    for group in (SMALL, LARGE):
        assert len(server.group(group).target) == 30
        assert server.group(group).target_epoch == server.group(group).group_epoch


def test_topics_are_served_from_the_start(server: SlowServer) -> None:
    assert server.runtime.is_serving()
    topic = CreateTopic(INTERNAL, TopicName("bar"), make_topic_id("bar"), 2)
    assert error_name(server.ask(topic)) == "NONE"
    assert TopicName("bar") in server.runtime.image.by_name


def test_a_stop_during_the_load_ends_it(server: SlowServer) -> None:
    server.advance(5 * SLICE_MS)
    asyncio.run(server.runtime.stop())
    loaded = server.runtime.stats.records_loaded
    server.advance(10_000)
    assert server.runtime.stats.records_loaded == loaded
    assert not server.runtime.ready()


def test_a_store_that_cannot_be_read_ends_the_start(
    server: SlowServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(
        store: MemoryLogStore, partition: LogPartition, key_prefix: bytes = b""
    ) -> Iterator[LatestEntry]:
        raise StoreCorrupt("it is damaged")

    monkeypatch.setattr(MemoryLogStore, "latest", fail)
    server.advance(10_000)
    assert not server.runtime.ready()
    with pytest.raises(StoreCorrupt):
        asyncio.run(server.runtime.loaded())
