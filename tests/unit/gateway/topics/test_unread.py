"""Segments not loaded since the start: loaded in steps, which all waiting readers share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.runtime.loop.slices import Steps, run_at_once
from gateway.topics.log import segment
from gateway.topics.log.compaction import compact_in_steps
from gateway.topics.log.segment import Segment
from gateway.topics.topic_catalogue import (
    Append,
    OffsetQuery,
    OffsetResult,
    PartitionKey,
    Read,
    ReadResult,
)
from model.errors import ErrorCode
from tests.unit.gateway.topics.store_rig import (
    KEY,
    NOW_MS,
    ORDERS,
    StoreRig,
    a_batch,
    headers,
    run_store,
    segment_files,
)

SIZE = len(a_batch(b"00"))
SEGMENT = 10
"""Batches of a segment."""
SEGMENTS = 3
COUNT = SEGMENT * SEGMENTS
SETTINGS: dict[str, Any] = {
    "gateway_topics_segment_bytes": SEGMENT * SIZE,
    "message_max_bytes": SIZE,
}


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Load two batches a step; list the segment's base offset once for each step."""
    monkeypatch.setattr(segment, "LOAD_BATCHES", 2)
    steps: list[int] = []
    load_some = Segment.load_some

    def note(self: Segment) -> Any:
        steps.append(self.base_offset)
        return load_some(self)

    monkeypatch.setattr(Segment, "load_some", note)
    return steps


@asynccontextmanager
async def reopened(folder: Path) -> AsyncIterator[StoreRig]:
    """Three segments whose timestamps rise; the newest alone is read when it is opened."""
    async with run_store(folder, **SETTINGS) as store:
        for number in range(COUNT):
            store.append(a_batch(b"%02d" % number, timestamp_ms=NOW_MS + number))
    async with run_store(folder, **SETTINGS) as store:
        assert [part.is_loaded for part in store.open().segments] == [False, False, True]
        yield store


def read(store: StoreRig, offset: int) -> Steps[ReadResult]:
    (result,) = yield from store.topics.read([Read(KEY, offset, 1 << 20)], 1 << 20)
    return result


def find(store: StoreRig, timestamp: int) -> Steps[OffsetResult]:
    (result,) = yield from store.topics.find_offsets([OffsetQuery(KEY, timestamp)])
    return result


def take(steps: Steps[Any], count: int) -> bool:
    """Take so many steps; whether there may be more."""
    return all(next(steps, steps) is not steps for _ in range(count))


async def test_who_asks_for_one_segment_at_the_same_time_shares_the_work(
    tmp_path: Path, loaded: list[int]
) -> None:
    async with reopened(tmp_path) as store:
        del loaded[:]
        asked = [read(store, offset) for offset in (3, 4, 5, 9)]
        found: dict[int, ReadResult] = {}
        while len(found) < len(asked):
            for number, steps in enumerate(asked):
                try:
                    if number not in found:
                        next(steps)
                except StopIteration as end:
                    found[number] = end.value
        assert loaded == [0] * (SEGMENT // 2 + 1)
        first = [headers(found[number].records)[0].base_offset for number in range(4)]
        assert first == [3, 4, 5, 9]


async def test_who_goes_away_leaves_what_was_done_to_others(
    tmp_path: Path, loaded: list[int]
) -> None:
    async with reopened(tmp_path) as store:
        del loaded[:]
        gone = read(store, 0)
        assert take(gone, 3)
        gone.close()
        assert loaded == [0] * 3
        assert not store.open().segments[0].is_loaded
        assert len(headers(run_at_once(read(store, 0)).records)) == SEGMENT
        assert loaded == [0] * (SEGMENT // 2 + 1)


async def test_a_read_of_what_is_known_takes_no_step(tmp_path: Path) -> None:
    async with reopened(tmp_path) as store:
        run_at_once(read(store, 0))
        with pytest.raises(StopIteration):
            next(read(store, 0))


@pytest.mark.parametrize("step", range(6))
async def test_a_segment_that_is_trimmed_while_it_is_read_is_out_of_range(
    tmp_path: Path, step: int
) -> None:
    async with reopened(tmp_path) as store:
        steps = read(store, 1)
        assert take(steps, step)
        for _ in store.open().drop_until(0):
            pass
        result = run_at_once(steps)
        assert result.error == ErrorCode.OFFSET_OUT_OF_RANGE
        assert len(segment_files(tmp_path)) == SEGMENTS - 1


@pytest.mark.parametrize("timestamp", [NOW_MS + 1, NOW_MS + 12, NOW_MS + 25, -3])
@pytest.mark.parametrize("change", ["trim", "compact", "append"])
async def test_a_timestamp_is_found_whatever_happens_while_it_is_looked_for(
    tmp_path: Path, timestamp: int, change: str
) -> None:
    """At any step: the offset that is found is the one before the change, or after it."""
    step = 0
    while True:
        async with reopened(tmp_path / str(step)) as store:
            log = store.open()
            before = COUNT - 1 if timestamp == -3 else timestamp - NOW_MS
            steps = find(store, timestamp)
            if not take(steps, step):
                return
            changes: dict[str, Callable[[], object]] = {
                "trim": lambda: list(log.drop_until(0)),  # noqa: B023
                "compact": lambda: list(compact_in_steps(log, NOW_MS, 10 * SEGMENT * SIZE)),  # noqa: B023
                "append": lambda: store.append(a_batch(b"30", timestamp_ms=NOW_MS + COUNT)),
            }
            changes[change]()
            found = run_at_once(steps)
            after = {
                "trim": max(before, SEGMENT),
                # All have one key, and the newest segment stays as it is.
                "compact": max(before, COUNT - SEGMENT),
                "append": COUNT if timestamp == -3 else before,
            }[change]
            assert found.error == ErrorCode.NONE
            assert found.offset in (before, after), step
        step += 1


@pytest.mark.parametrize("step", range(4))
@pytest.mark.parametrize("ask", ["read", "find", "append"])
async def test_a_topic_that_is_deleted_while_it_is_read_stays_so(
    tmp_path: Path, ask: str, step: int
) -> None:
    async with reopened(tmp_path):
        pass
    async with run_store(tmp_path, **SETTINGS) as store:
        steps: Steps[Any] = read(store, 0) if ask == "read" else find(store, NOW_MS)
        if ask == "append":
            steps = append(store)
        take(steps, step)
        store.coordinator.delete("orders")
        assert run_at_once(steps).error == ErrorCode.UNKNOWN_TOPIC_ID
        assert store.topics._logs.get(KEY) is None
        assert not store.topics._logs._opening
        assert len(store.topics._logs._files) == 0


def append(store: StoreRig) -> Steps[Any]:
    (result,) = yield from store.topics.append([Append(KEY, a_batch(b"xx"))])
    return result


async def test_who_opens_a_partition_at_the_same_time_shares_the_work(
    tmp_path: Path, loaded: list[int]
) -> None:
    async with reopened(tmp_path):
        pass
    async with run_store(tmp_path, **SETTINGS) as store:
        del loaded[:]
        asked = [find(store, -1) for _ in range(4)]
        ends = []
        while asked:
            for steps in tuple(asked):
                try:
                    next(steps)
                except StopIteration as end:
                    ends.append(end.value.offset)
                    asked.remove(steps)
        assert ends == [COUNT] * 4
        assert loaded == [(SEGMENTS - 1) * SEGMENT] * (SEGMENT // 2 + 1)


async def test_after_a_stop_nothing_more_is_read(tmp_path: Path) -> None:
    async with reopened(tmp_path) as store:
        steps = read(store, 0)
        assert take(steps, 1)
        await store.topics.stop()
        assert run_at_once(steps).error == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert len(store.topics._logs._files) == 0


async def test_room_is_made_where_what_goes_is_not_open_yet(tmp_path: Path) -> None:
    """In steps: a partition may have to be loaded first to know its end offset."""
    other = PartitionKey(ORDERS, 1)
    bounds = SETTINGS | {"gateway_topics_total_bytes": (SEGMENT + 1) * SIZE}
    async with run_store(tmp_path, **bounds) as store:
        for number in range(SEGMENT):
            store.append(a_batch(b"%02d" % number), other)
        store.append(a_batch(b"xx"))
    async with run_store(tmp_path, **bounds) as store:
        steps = store.topics.append([Append(KEY, a_batch(b"yy"))])
        turns = 0
        while take(steps, 1):
            turns += 1
        assert turns > SEGMENT // 2
        assert store.values() == [(0, b"xx"), (1, b"yy")]
        assert (store.start(other), store.end(other)) == (SEGMENT, SEGMENT)
