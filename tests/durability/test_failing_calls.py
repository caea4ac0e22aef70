"""Calls of the writer that fail: what becomes of those who wait, and of the process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from coordinator.runtime.api import Reply
from coordinator.runtime.commit.process_end import HalfApplied
from model.commands.consumer import ExpireMember
from model.ids import GroupId, MemberId, TopicName
from storage.log_store import StoreCorrupt, StoreFailed
from tests.support.virtual.server import Pending, ProcessEnded, VirtualServer, error_name


def failing(*_: object) -> None:
    raise StoreFailed("the disk is gone")


def committing(server: VirtualServer, offset: int) -> Pending:
    return server.submit(server.commit_command("g", "", None, "foo", {0: offset}))


@pytest.mark.parametrize("method", ["write", "sync", "mark_durable", "sync_watermark"])
def test_whatever_the_disk_refuses_ends_the_process(method: str) -> None:
    """Bug: where the watermark could not be written nobody was answered and nothing ended."""
    server = VirtualServer({"foo": 1})
    server.advance(2_000)
    setattr(server.store, method, failing)
    commit = committing(server, 7)
    server.advance(10)
    assert {type(failure) for failure in server.failures} == {StoreFailed}
    assert commit.is_answered == (method == "sync_watermark"), "only then it was durable"


def test_an_answer_that_cannot_be_given_keeps_no_other_waiting() -> None:
    """Bug 28 (KAFKA-18484, KAFKA-19064): one raised, and the rest was never completed."""
    server = VirtualServer({"foo": 1})
    told = []

    def raising(_: object) -> None:
        told.append("raised")
        raise RuntimeError("a door's bug")

    first = committing(server, 1)
    server.runtime.submit(server.commit_command("g", "", None, "foo", {0: 2}), raising)
    joined = server.submit(server.join_command("h", "a", ["foo"]))
    server.settle()
    assert told == ["raised"]
    assert first.is_answered
    assert joined.is_answered
    assert server.failures == []
    assert server.fetch("g", "foo", 0) == 2


def test_a_watcher_that_raises_keeps_no_other_waiting() -> None:
    """Bug 28 for members that wait for news."""
    server = VirtualServer({"foo": 6})
    told: list[str] = []

    def telling(name: str) -> Callable[[], None]:
        def tell() -> None:
            told.append(name)
            raise RuntimeError("a door's bug")

        return tell

    for name in ("a", "b"):
        server.join("g", name, ["foo"])
    kept = server.names(server.beat(server.heartbeat("g", "a", 2)).assignment)
    server.beat(server.heartbeat("g", "a", 2, owned=kept))
    server.beat(server.heartbeat("g", "b", 3, owned={}))
    group = server.group("g")
    for member in list(group.members()):
        server.runtime.watch(group.group_id, member.member_id, telling(member.member_id))
    server.join("g", "c", ["foo"])
    server.advance(10)
    assert sorted(told) == ["a", "b"]


def test_who_follows_the_topics_and_raises_keeps_no_other_waiting() -> None:
    """Bug 28 for those who are told of topics."""
    server = VirtualServer()
    told: list[str] = []

    def raising(*_: object) -> None:
        told.append("raised")
        raise RuntimeError("a door's bug")

    server.runtime.on_topics_changed(raising)
    server.runtime.on_topics_changed(lambda *_: told.append("told"))
    watched = []
    server.create("bar", 1)
    server.join("g", "a", ["foo"])
    server.runtime.watch(*where(server), lambda: watched.append("a"))
    server.create("foo", 1)
    server.advance(10)
    assert told == ["raised", "told"] * 2
    assert TopicName("foo") in server.runtime.image.by_name
    assert watched == ["a"]


def where(server: VirtualServer) -> tuple[GroupId, MemberId]:
    group = server.group("g")
    return group.group_id, next(group.members()).member_id


def test_a_bug_while_a_batch_is_closed_ends_the_process() -> None:
    """What is gathered then can be neither written nor answered."""
    server = VirtualServer({"foo": 1})

    def raising() -> None:
        raise RuntimeError("a bug of ours")

    server.runtime.parts.writer._before_write = raising
    commit = committing(server, 1)
    with pytest.raises(ProcessEnded):
        server.settle()
    (failure,) = server.failures
    assert isinstance(failure, HalfApplied)
    assert isinstance(failure.__cause__, RuntimeError)
    assert not commit.is_answered


@pytest.mark.parametrize("method", ["get_many_latest", "latest"])
def test_an_offset_that_cannot_be_read_is_an_error_and_never_none(method: str) -> None:
    """S20: what is damaged must not look as if nothing had been committed."""
    server = VirtualServer({"foo": 1})
    server.ask(server.commit_command("g", "", None, "foo", {0: 7}))

    def damaged(*_: object) -> None:
        raise StoreCorrupt("a table is damaged")

    setattr(server.store, method, damaged)
    fetch = server.fetch_command("g", "foo", (0,))
    if method == "latest":
        fetch = replace(fetch, topics=None)
    assert error_name(server.ask(fetch)) == "UNKNOWN_SERVER_ERROR"
    assert server.join("h", "a", ["foo"]).member_epoch == 2
    assert server.failures == []


def test_an_expiry_that_raises_keeps_no_other_waiting() -> None:
    """Bug 28 for members that are silent: the timer was never armed again."""
    server = VirtualServer({"foo": 1})
    for name in "abc":
        server.join(f"g-{name}", name, ["foo"])
    expire = server.runtime.parts.timers._expire
    failures = []

    def raising(command: ExpireMember, reply: Reply) -> None:
        if command.member_id == "b" and not failures:
            failures.append(command)
            raise RuntimeError("a bug of ours")
        expire(command, reply)

    server.runtime.parts.timers._expire = raising
    server.advance(server.settings.group_consumer_session_timeout_ms + 1_000)
    assert failures
    assert [server.group(f"g-{name}").member_count for name in "abc"] == [0, 1, 0]
    server.advance(server.settings.group_consumer_session_timeout_ms + 1_000)
    assert server.group("g-b").member_count == 0
