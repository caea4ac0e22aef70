"""An almost full disk: nothing is written, and everything resumes when space is freed."""

from __future__ import annotations

from collections.abc import Iterable

from model.caller import INTERNAL
from model.commands.topics import GrowTopic
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, TopicName
from tests.support.virtual.server import VirtualServer, error_name


class Disk:
    """A disk whose free space the test sets."""

    def __init__(self) -> None:
        self.free = 1_000

    def __call__(self) -> int:
        return self.free


def server_on(disk: Disk) -> VirtualServer:
    server = VirtualServer(settings=CoordinatorSettings(log_min_free_bytes=100))
    server.runtime._around.space._free_bytes = disk
    server.create("foo", 2)
    server.join("g", "a", ["foo"])
    return server


def test_what_would_write_is_refused_and_the_rest_is_served() -> None:
    disk = Disk()
    server = server_on(disk)
    disk.free = 10
    server.advance(2_000)
    written = server.runtime.stats.records_written
    for command in (
        server.join_command("g", "b", ["foo"]),
        server.commit_command("g", "a", 2, "foo", {0: 1}),
        GrowTopic(INTERNAL, TopicName("foo"), 3),
    ):
        assert error_name(server.ask(command)) == "COORDINATOR_NOT_AVAILABLE"
    assert server.beat(server.heartbeat("g", "a", 2)).member_epoch == 2
    assert server.fetch("g", "foo", 0) == -1
    assert server.runtime.stats.records_written == written
    assert server.group("g").member_count == 1


def test_nobody_expires_before_there_is_room() -> None:
    disk = Disk()
    server = server_on(disk)
    disk.free = 10
    server.advance(120_000)
    assert server.group("g").member_count == 1
    disk.free = 1_000
    server.advance(3_000)
    assert server.group("g").member_count == 0


def test_all_goes_on_when_there_is_room() -> None:
    disk = Disk()
    server = server_on(disk)
    disk.free = 10
    server.advance(2_000)
    server.ask(server.join_command("g", "b", ["foo"]))
    disk.free = 1_000
    server.advance(2_000)
    assert server.join("g", "b", ["foo"]).member_epoch == 3


def test_a_group_that_could_not_look_at_its_topics_looks_again() -> None:
    """Bug: the disk filled up after the topic was written, and its groups never saw the topic."""
    disk = Disk()
    server = server_on(disk)
    refresh = server.runtime.parts.refresh.refresh

    def full_by_now(group_ids: Iterable[GroupId], name: TopicName) -> None:
        disk.free = 10
        server.runtime._around.space._checked_ms = -1_000_000
        server.runtime.parts.refresh.refresh = refresh  # type: ignore[method-assign]
        refresh(group_ids, name)

    server.runtime.parts.refresh.refresh = full_by_now  # type: ignore[method-assign]
    assert error_name(server.ask(GrowTopic(INTERNAL, TopicName("foo"), 3))) == "NONE"
    assert server.group("g").group_epoch == 2
    disk.free = 1_000
    server.advance(3_000)
    assert (server.group("g").group_epoch, len(server.group("g").target)) == (3, 3)


def test_a_data_folder_that_is_gone_takes_no_writes() -> None:
    """Bug: commits got UNKNOWN_SERVER_ERROR and a traceback; a join was accepted and lost."""
    server = server_on(Disk())

    def look() -> int:
        raise FileNotFoundError("data")

    server.runtime._around.space._free_bytes = look
    server.advance(2_000)
    written = server.runtime.stats.records_written
    commit = server.commit_command("g", "a", 2, "foo", {0: 1})
    assert error_name(server.ask(commit)) == "COORDINATOR_NOT_AVAILABLE"
    server.advance(120_000)
    assert server.runtime.stats.records_written == written
    server.runtime._around.space._free_bytes = Disk()
    server.advance(2_000)
    assert server.join("g", "b", ["foo"]).assignment
    assert not server.failures
