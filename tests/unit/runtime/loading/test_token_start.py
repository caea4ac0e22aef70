"""The time that tokens begin at is durable before the first is given, and never goes back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from coordinator.runtime.clock import SteadyClock
from coordinator.runtime.loading.token_start import TokenStart
from model.ids import GroupId, MemberId
from model.log.side_records import SideRecord, TokenStartKey, TokenStartValue
from storage.log_store import PartitionAppend, StoreStalled
from storage.side_codec import decode_side
from tests.support.memory import MemoryLogStore
from tests.support.virtual.scheduler import START_WALL_MS, VirtualScheduler
from tests.support.virtual.server import VirtualServer

HOUR_MS = 3_600_000


class CountingStore(MemoryLogStore):
    """Stalls the first ``stalls`` writes."""

    stalls = 0
    writes = 0

    def write(
        self, appends: Sequence[PartitionAppend], side: Sequence[tuple[bytes, bytes | None]] = ()
    ) -> None:
        if self.stalls:
            self.stalls -= 1
            raise StoreStalled("stalled")
        self.writes += 1
        super().write(appends, side)


def read_start(store: MemoryLogStore) -> int | None:
    """What a crash leaves."""
    found: list[Any] = [
        record.value
        for record in (decode_side(key, value) for key, value in store.crash(0).side())
        if isinstance(record, SideRecord) and isinstance(record.key, TokenStartKey)
    ]
    assert all(isinstance(value, TokenStartValue) for value in found)
    return found[0].wall_ms if found else None


def start_of(store: MemoryLogStore, last_ms: int) -> TokenStart:
    return TokenStart(store, SteadyClock(VirtualScheduler()), last_ms)


@pytest.mark.parametrize(
    ("last_ms", "expected_ms"),
    [
        (0, START_WALL_MS),
        (START_WALL_MS - 1, START_WALL_MS),
        (START_WALL_MS + HOUR_MS, START_WALL_MS + HOUR_MS),
    ],
    ids=["first start", "later start", "the clock was set back"],
)
def test_the_later_of_clock_and_last_start_is_durable(last_ms: int, expected_ms: int) -> None:
    store = CountingStore(1)
    start = start_of(store, last_ms)
    assert not start.is_written
    start.write()
    assert (start.is_written, start.wall_ms) == (True, expected_ms)
    assert read_start(store) == expected_ms


def test_it_is_written_once() -> None:
    store = CountingStore(1)
    start = start_of(store, 0)
    for _ in range(3):
        start.write()
    assert store.writes == 1


def test_a_store_that_stalls_is_tried_again() -> None:
    store = CountingStore(1)
    store.stalls = 1
    start = start_of(store, 0)
    with pytest.raises(StoreStalled):
        start.write()
    assert not start.is_written
    start.write()
    assert read_start(store) == START_WALL_MS


def read_tokens(server: VirtualServer) -> tuple[tuple[int, ...], ...]:
    """A full heartbeat, which changes nothing: no record is written."""
    member = server.group("g").member(MemberId("a"))
    assert member is not None
    end = server.store.next_offset(server.runtime.partition_of(GroupId("g")))
    command = server.heartbeat(
        "g", "a", member.member_epoch, sub=["t"], owned={"t": (0,)}, timeout_ms=60_000
    )
    tokens = server.beat(command).tokens
    assert server.store.next_offset(server.runtime.partition_of(GroupId("g"))) == end
    return tokens


def test_a_token_that_no_record_tells_of_is_not_undercut_when_the_clock_is_set_back() -> None:
    server = VirtualServer({"t": 1})
    server.join("g", "a", ["t"])
    server.scheduler.wall_offset_ms += HOUR_MS
    server.restart()
    before = read_tokens(server)
    server.scheduler.wall_offset_ms -= HOUR_MS
    server.restart()
    assert read_tokens(server) >= before
