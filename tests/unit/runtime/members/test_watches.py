"""Watches: one notification each, of durable changes, in slices, one watch per member."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.runtime.loop.slices import Slices
from coordinator.runtime.members.member_watches import BUSY_RETRY_MS, SLICE, Watches
from model.commands.classic import ClassicHeartbeat, JoinGroup, SyncGroup
from model.commands.command import Command
from model.commands.consumer import (
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    LeaveGroup,
    LeavingMember,
)
from model.commands.groups import ConsumerGroupDescribe
from model.errors import GroupError
from model.ids import GroupId, MemberId
from tests.support.virtual.scheduler import VirtualScheduler
from tests.support.virtual.server import CALLER, VirtualServer

G, A, B = GroupId("g"), MemberId("a"), MemberId("b")
CHANGING = (G,)
"""Its change is not durable yet: who watches is told when it is."""


class ChangeForAll:
    """Every member has a pending change; those in ``in_transit`` come first."""

    def __init__(self, in_transit: list[MemberId] | None = None) -> None:
        self._in_transit = in_transit or []

    def has_pending_change(self, group_id: GroupId, member_id: MemberId) -> bool:
        return True

    def members_in_transit(self, group_id: GroupId) -> list[MemberId]:
        return self._in_transit


def make_watches(
    scheduler: VirtualScheduler, news: ChangeForAll, is_busy: Callable[[], bool] = lambda: False
) -> Watches:
    """Watches of a group that is changing."""
    slices = Slices(scheduler.call_soon, scheduler.call_later_ms, scheduler.monotonic_ms)
    return Watches(slices, news, CHANGING, is_busy=is_busy)


def note(calls: list[str], name: str) -> Callable[[], None]:
    return lambda: calls.append(name)


def waiting() -> VirtualServer:
    """a@3 has foo-0 and must revoke nothing; b@3 has foo-1."""
    server = VirtualServer({"foo": 2})
    for name in ("a", "b"):
        server.submit(server.join_command("g", name, ["foo"]))
    server.settle()
    return server


def test_news_are_told_once_and_when_they_are_durable() -> None:
    server = waiting()
    calls: list[str] = []
    server.runtime.watch(G, A, note(calls, "a"))
    server.scheduler.blocking_ms = lambda: 10
    server.submit(server.join_command("g", "c", []))
    server.submit(server.join_command("g", "d", ["foo"]))
    server.advance(9)
    assert calls == []
    server.advance(1)
    assert calls == ["a"]
    server.submit(server.join_command("g", "e", ["foo"]))
    server.advance(100)
    assert calls == ["a"]


def test_a_watch_on_news_that_there_are_already_is_told_at_once() -> None:
    server = waiting()
    server.leave("g", "b")
    calls: list[str] = []
    server.runtime.watch(G, A, note(calls, "a"))
    assert calls == ["a"]
    server.runtime.watch(G, B, note(calls, "b is gone"))
    assert calls == ["a", "b is gone"]


def test_news_that_are_not_durable_yet_are_told_when_they_are() -> None:
    server = waiting()
    server.scheduler.blocking_ms = lambda: 10
    server.submit(server.join_command("g", "c", ["foo"]))
    server.advance(5)
    calls: list[str] = []
    server.runtime.watch(G, A, note(calls, "a"))
    assert calls == []
    server.advance(5)
    assert calls == ["a"]


def test_a_member_without_news_is_not_told() -> None:
    server = waiting()
    calls: list[str] = []
    server.runtime.watch(G, A, note(calls, "a"))
    server.ask(server.commit_command("g", "a", 3, "foo", {0: 1}))
    server.beat(server.heartbeat("g", "a", 3, owned={"foo": (0,)}))
    server.join("other", "x", ["foo"])
    server.advance(1_000)
    assert calls == []


def test_the_newest_watch_of_a_member_is_the_one_that_counts() -> None:
    server = waiting()
    calls: list[str] = []
    older = server.runtime.watch(G, A, note(calls, "older"))
    server.runtime.watch(G, A, note(calls, "newer"))
    older.cancel()
    server.join("g", "c", ["foo"])
    assert calls == ["newer"]


@pytest.mark.parametrize(
    "command",
    [
        ConsumerGroupHeartbeat(CALLER, G, A, 3),
        ConsumerGroupLeave(CALLER, G, A),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_a_member_says_drops_the_watch_of_another_connection(command: Command) -> None:
    server = waiting()
    calls: list[str] = []
    server.runtime.watch(G, A, note(calls, "news"), on_dropped=note(calls, "dropped"))
    server.runtime.watch(G, B, note(calls, "news of b"), on_dropped=note(calls, "b dropped"))
    server.submit(command)
    assert calls == ["dropped"], "before anything comes of it"


@pytest.mark.parametrize(
    "command",
    [
        ConsumerGroupHeartbeat(CALLER, G, A, 50),
        ClassicHeartbeat(CALLER, G, A, 3),
        SyncGroup(CALLER, G, A, 3),
        JoinGroup(CALLER, G, A, B, 30_000, 60_000, "consumer", ()),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_is_refused_drops_no_watch(command: Command) -> None:
    """Bug: another client's heartbeat with a wrong epoch ended a healthy member's stream."""
    server = waiting()
    calls: list[str] = []
    server.runtime.watch(G, A, note(calls, "news"), on_dropped=note(calls, "dropped"))
    assert isinstance(server.ask(command), GroupError)
    assert calls == []


@pytest.mark.parametrize(
    "command",
    [
        ConsumerGroupHeartbeat(CALLER, G, A, 3, by_server=True),
        ClassicHeartbeat(CALLER, G, A, 3, by_server=True),
        ConsumerGroupHeartbeat(CALLER, G, B, 3),
        ConsumerGroupHeartbeat(CALLER, GroupId("h"), A, 3),
        LeaveGroup(CALLER, G, (LeavingMember(B),)),
        ConsumerGroupDescribe(CALLER, (G,)),
    ],
    ids=["server", "server, classic", "other member", "other group", "removed", "described"],
)
def test_what_others_say_drops_no_watch(command: Command) -> None:
    server = waiting()
    calls: list[str] = []
    server.runtime.watch(G, A, note(calls, "news"), on_dropped=note(calls, "dropped"))
    server.submit(command)
    assert calls == []


def test_a_watch_that_is_replaced_hears_of_it() -> None:
    server = waiting()
    calls: list[str] = []
    server.runtime.watch(G, A, note(calls, "news"), on_dropped=note(calls, "dropped"))
    server.runtime.watch(G, A, note(calls, "newer"))
    assert calls == ["dropped"]


def test_who_fails_to_hear_of_its_end_harms_nobody() -> None:
    server = waiting()

    def fail() -> None:
        raise RuntimeError("a door's bug")

    server.runtime.watch(G, A, note([], "news"), on_dropped=fail)
    assert server.submit(server.heartbeat("g", "a", 3)) is not None


def test_a_cancelled_watch_is_not_told() -> None:
    server = waiting()
    calls: list[str] = []
    server.runtime.watch(G, A, note(calls, "a")).cancel()
    server.join("g", "c", ["foo"])
    assert calls == []


def test_a_release_is_news_for_who_waits_and_a_revocation_for_who_must() -> None:
    server = VirtualServer({"foo": 2})
    server.join("g", "a", ["foo"])
    server.join("g", "b", ["foo"])
    calls: list[str] = []
    server.runtime.watch(G, B, note(calls, "b"))
    server.runtime.watch(G, A, note(calls, "a must revoke"))
    assert calls == ["a must revoke"]
    server.beat(server.heartbeat("g", "a", 2))
    server.runtime.watch(G, A, note(calls, "a"))
    assert calls == ["a must revoke"]
    server.beat(server.heartbeat("g", "a", 2, owned={"foo": (0,)}))
    server.advance(1)
    assert calls == ["a must revoke", "b"]


def test_who_is_removed_is_told() -> None:
    server = waiting()
    calls: list[str] = []
    server.runtime.watch(G, A, note(calls, "a"))
    server.advance(60_000)
    assert calls == ["a"]


def test_many_are_told_in_slices_with_turns_between_them() -> None:
    scheduler = VirtualScheduler()
    watches = make_watches(scheduler, ChangeForAll())
    calls: list[str] = []
    for number in range(2 * SLICE + 1):
        watches.add(G, MemberId(f"m{number}"), note(calls, f"m{number}"))
    watches.look_at([G])
    told = []
    while scheduler.step():
        told.append(len(calls))
    assert told == [SLICE, 2 * SLICE, 2 * SLICE + 1]
    assert calls == [f"m{number}" for number in range(2 * SLICE + 1)]
    assert len(watches) == 0


def test_who_was_told_may_watch_again_in_the_same_turn() -> None:
    """Trigger: a front end submits a heartbeat at once, and watches again if nothing changed."""
    scheduler = VirtualScheduler()
    watches = make_watches(scheduler, ChangeForAll())
    calls: list[str] = []

    def again() -> None:
        calls.append("first")
        watches.add(G, A, note(calls, "second"))

    watches.add(G, A, again)
    watches.look_at([G])
    scheduler.run_for(0)
    assert calls == ["first"]
    watches.look_at([G])
    scheduler.run_for(0)
    assert calls == ["first", "second"]


def test_who_holds_what_others_wait_for_is_told_before_all_the_others() -> None:
    """Trigger: a member joins a thousand; the one that must revoke for it is notified last."""
    scheduler = VirtualScheduler()
    watches = make_watches(scheduler, ChangeForAll([MemberId(f"m{SLICE}"), B]))
    calls: list[str] = []
    for number in range(SLICE + 1):
        watches.add(G, MemberId(f"m{number}"), note(calls, f"m{number}"))
    watches.look_at([G])
    scheduler.run_for(0)
    assert calls == [f"m{SLICE}", *(f"m{number}" for number in range(SLICE))]


def test_members_of_one_stream_are_told_one_after_another() -> None:
    """The stream then sends the members of a slice in one message, whatever their join order."""
    scheduler = VirtualScheduler()
    watches = make_watches(scheduler, ChangeForAll([B]))
    calls: list[str] = []
    for number in range(SLICE + 2):
        watches.add(G, MemberId(f"m{number}"), note(calls, f"m{number}"), speaker=number % 2)
    watches.look_at([G])
    scheduler.run_for(0)
    even, odd = range(0, SLICE + 2, 2), range(1, SLICE + 2, 2)
    assert calls == [f"m{number}" for number in (*even, *odd)]


def test_while_others_are_busy_the_loop_is_not_asked_in_every_turn() -> None:
    """Bug: while the store stalled, which keeps the queue busy, this used a whole processor."""
    scheduler, calls = VirtualScheduler(), list[str]()
    asked = 0

    def is_busy() -> bool:
        nonlocal asked
        asked += 1
        return scheduler.now_ms < 1_000

    watches = make_watches(scheduler, ChangeForAll(), is_busy)
    watches.add(G, A, note(calls, "a"))
    watches.look_at([G])
    for _ in range(1_000):
        if not calls:
            scheduler.step()
    assert (calls, asked) == (["a"], 1_000 // BUSY_RETRY_MS + 1)
