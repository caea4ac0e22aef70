"""The wall clock jumps, an hour or a lifetime, forth and back, and the process stands still.

Sessions know no wall clock; what is written never goes back in time; and no jump makes offsets
expire in bulk.
"""

from __future__ import annotations

import pytest

from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import LogPartition
from storage.codec.batches import read_batch_header
from tests.support.virtual.scheduler import START_WALL_MS
from tests.support.virtual.server import VirtualServer, error_name

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
YEAR_2100_MS = 4_102_444_800_000
JUMPS = {
    "an hour ahead": HOUR_MS,
    "an hour back": -HOUR_MS,
    "to 1970": -START_WALL_MS,
    "to 2100": YEAR_2100_MS - START_WALL_MS,
}
GROUPS = 12


def busy() -> VirtualServer:
    """A member, and many groups that have nothing but offsets."""
    server = VirtualServer({"foo": 1})
    server.join("g", "a", ["foo"])
    for number in range(GROUPS):
        server.ask(server.commit_command(f"g{number}", "", None, "foo", {0: number}))
    return server


def timestamps(server: VirtualServer) -> list[int]:
    """Of all batches, in the order in which they were written to their partition."""
    store = server.store
    return [
        read_batch_header(batch).max_timestamp
        for number in range(store.partitions)
        for batch in store.read_log(LogPartition(number))
    ]


@pytest.mark.parametrize("jump", JUMPS)
def test_sessions_do_not_see_it(jump: str) -> None:
    server = busy()
    for second in range(0, 100, 5):
        if second == 50:
            server.scheduler.wall_offset_ms += JUMPS[jump]
        assert error_name(server.ask(server.heartbeat("g", "a", 2))) == "NONE"
        server.advance(5_000)
    server.advance(server.settings.group_consumer_session_timeout_ms - 5_200)
    assert server.group("g").member_count == 1
    server.advance(1_000)
    assert server.group("g").member_count == 0


@pytest.mark.parametrize("is_back_again", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("jump", JUMPS)
def test_no_offset_expires_for_it(jump: str, restarts: bool, is_back_again: bool) -> None:
    """Bug: each write under a clock set to 2100 was believed one hour more than the last."""
    server = busy()
    if restarts:
        server.restart()
    server.scheduler.wall_offset_ms += JUMPS[jump]
    for number in range(400):
        server.ask(server.commit_command("busy", "", None, "foo", {0: number}))
        server.advance(1_000)
    if is_back_again:
        server.scheduler.wall_offset_ms -= JUMPS[jump]
    server.advance(2 * server.settings.offsets_retention_check_interval_ms)
    assert [server.fetch(f"g{number}", "foo", 0) for number in range(GROUPS)] == list(range(GROUPS))


@pytest.mark.parametrize("jump", JUMPS)
def test_what_is_written_never_goes_back_and_leaps_no_further_than_an_hour(jump: str) -> None:
    server = VirtualServer({"foo": 1}, partitions=1)
    for number in range(60):
        if number == 20:
            server.scheduler.wall_offset_ms += JUMPS[jump]
        if number == 40:
            server.scheduler.wall_offset_ms -= JUMPS[jump]
        server.ask(server.commit_command("g", "", None, "foo", {0: number}))
        server.advance(1_000)
    found = timestamps(server)
    assert found == sorted(found)
    assert found[0] >= START_WALL_MS
    assert found[-1] <= START_WALL_MS + HOUR_MS + 60_000


def test_offsets_expire_in_time_after_a_long_sleep_of_the_machine() -> None:
    """The wall clock was right, and monotonic time had stood still: it is believed by and by."""
    settings = CoordinatorSettings(offsets_retention_minutes=180)
    server = VirtualServer({"foo": 1}, settings=settings)
    server.ask(server.commit_command("old", "", None, "foo", {0: 1}))
    server.scheduler.wall_offset_ms += 10 * HOUR_MS
    for number in range(11):
        server.ask(server.commit_command("busy", "", None, "foo", {0: number}))
        server.advance(HOUR_MS // 2)
    assert server.fetch("old", "foo", 0) == -1
    assert server.fetch("busy", "foo", 0) == 10


def test_a_slow_disk_expires_nobody_and_shows_nothing() -> None:
    """An fsync of 30 s, longer than a session: answers wait, and members are not the ones to pay.

    Heartbeats that write nothing are answered meanwhile.
    """
    server = VirtualServer(
        {"foo": 2}, settings=CoordinatorSettings(group_consumer_session_timeout_ms=20_000)
    )
    server.join("g", "a", ["foo"])
    server.scheduler.blocking_ms = lambda: 30_000
    commit = server.submit(server.commit_command("h", "", None, "foo", {0: 1}))
    joining = server.submit(server.join_command("i", "x", ["foo"]))
    for _ in range(5):
        server.advance(5_000)
        assert server.submit(server.heartbeat("g", "a", 2)).is_answered
    fetch = server.submit(server.fetch_command("h", "foo", (0,)))
    assert not any(answer.is_answered for answer in (commit, joining, fetch))
    server.advance(10_000)
    assert commit.is_answered
    assert joining.is_answered
    assert fetch.is_answered
    assert server.group("g").member_count == 1
