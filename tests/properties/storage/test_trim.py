"""Trimming: the log of every step folds to the same at every position that it still has."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from model.ids import LogOffset, LogPartition
from storage.codec.batches import decode_batch
from storage.log.fold import PartitionFold
from storage.log.trim import compute_trim_limit, read_history_start
from storage.log_store import LatestEntry, LogStore
from tests.support.memory import MemoryLogStore
from tests.support.storage.drawn_logs import (
    GROUPS,
    LEGACY,
    LOGS,
    MARKERS,
    OFFSETS,
    PLAIN_WRITES,
    PRODUCERS,
    TRANSACTIONAL_WRITES,
    VALUES,
    Write,
    encode,
    lay_out,
)
from tests.support.storage.raw_log import RawLog
from tests.support.trimming import trim_once

law = settings(max_examples=100, deadline=None)
PARTITION = LogPartition(0)
State = tuple[dict[bytes, LatestEntry], dict[int, dict[bytes, LatestEntry]]]

MIXED_WRITES = st.builds(
    Write,
    st.sampled_from(PRODUCERS),
    st.lists(
        st.tuples(st.sampled_from(OFFSETS + LEGACY + GROUPS), st.none() | VALUES),
        min_size=1,
        max_size=4,
    ).map(tuple),
    st.none(),
)
"""Whatever a transactional batch may hold, be it no producer's habit."""
ODD_LOGS = st.lists(PLAIN_WRITES | TRANSACTIONAL_WRITES | MIXED_WRITES | MARKERS, max_size=16)


def make_log(writes: list[Write], gap: int, per_batch: int) -> RawLog:
    log = RawLog(MemoryLogStore(1))
    log.append(0, encode(lay_out(writes, gap), per_batch))
    log.make_durable()
    return log


def fold_states(store: LogStore) -> list[tuple[int, State]]:
    """The state after each batch, and where that is."""
    folded, states = PartitionFold(), []
    for batch in store.read_log(PARTITION):
        folded.apply(batch)
        pending = {producer: dict(entries) for producer, entries in folded.pending.items()}
        states.append((int(folded.next_offset), (dict(folded.latest), pending)))
    return states


def read_stored(store: LogStore) -> tuple[list[LatestEntry], list[tuple[int, LatestEntry]]]:
    return list(store.latest(PARTITION)), list(store.pending(PARTITION))


def steps(store: LogStore, bytes_max: int) -> Iterator[int]:
    """Trims as far as it goes; the history start after each step."""
    limit = compute_trim_limit(store, PARTITION)
    while trim_once(store, PARTITION, limit, bytes_max):
        yield int(read_history_start(store, PARTITION).offset)


def check_left(store: LogStore, start: int, at_start: State) -> None:
    """Below the history start there is what the state there is made of, and nothing else."""
    latest, pending = at_start
    counting = {entry.offset for entry in latest.values()}
    waiting = {entry.offset for entries in pending.values() for entry in entries.values()}
    left: set[int] = set()
    for data in store.read_log(PARTITION):
        batch = decode_batch(data)
        if batch.base_offset >= start:
            break
        offsets = {record.offset for record in batch.records}
        assert offsets
        assert not batch.is_control
        assert batch.is_transactional == bool(offsets & waiting)
        assert batch.last_offset < start
        left |= offsets
    assert left == {int(offset) for offset in counting | waiting}


def check_kept(store: LogStore, at_start: State) -> None:
    """``kept`` has the offset of each of them by its key."""
    latest, pending = at_start
    assert dict(store.kept(PARTITION, b"\x00")) == {
        b"\x00" + key: struct.pack(">q", entry.offset) for key, entry in latest.items()
    }
    assert dict(store.kept(PARTITION, b"\x01")) == {
        b"\x01" + struct.pack(">q", producer) + key: struct.pack(">q", entry.offset)
        for producer, entries in pending.items()
        for key, entry in entries.items()
    }


def check_every_step(log: RawLog, bytes_max: int) -> None:
    store = log.store
    before, stored = dict(fold_states(store)), read_stored(store)
    limit, start = (
        compute_trim_limit(store, PARTITION),
        int(read_history_start(store, PARTITION).offset),
    )
    ends = [start, *(end for end in before if end <= limit)]
    for start in steps(store, bytes_max):
        after = fold_states(store)
        assert [entry for entry in after if entry[0] > start] == [
            entry for entry in before.items() if entry[0] > start
        ]
        check_left(store, start, before[start])
        check_kept(store, before[start])
        assert read_stored(store) == stored
    assert start == max(ends)


@law
@given(LOGS, st.integers(0, 2), st.integers(1, 4), st.sampled_from((1, 200, 1 << 20)))
def test_every_step_folds_to_the_same_at_every_position_from_the_history_start_on(
    writes: list[Write], gap: int, per_batch: int, bytes_max: int
) -> None:
    check_every_step(make_log(writes, gap, per_batch), bytes_max)


@law
@given(ODD_LOGS, st.sampled_from((1, 200)))
def test_so_it_does_for_what_no_producer_writes(writes: list[Write], bytes_max: int) -> None:
    check_every_step(make_log(writes, 0, 4), bytes_max)


@law
@given(LOGS, st.integers(0, 8), st.integers(0, 8))
def test_a_crash_at_any_step_leaves_a_store_that_goes_on(
    writes: list[Write], done: int, survivors: int
) -> None:
    log = make_log(writes, 0, 2)
    store = log.store
    assert isinstance(store, MemoryLogStore)
    whole, stored = fold_states(store)[-1:], read_stored(store)
    for number, _ in enumerate(steps(store, 1)):
        if number == done:
            break
    found = store.crash(min(survivors, store.unsynced_writes))
    assert fold_states(found)[-1:] == whole
    assert read_stored(found) == stored
    check_every_step(RawLog(found), 1)


@law
@given(LOGS, LOGS, st.integers(1, 3))
def test_a_log_goes_on_after_it_was_trimmed_and_is_trimmed_again(
    first: list[Write], second: list[Write], per_batch: int
) -> None:
    rows = lay_out([*first, *second], 0)
    batches = list(encode(rows, per_batch))
    half = len(batches) // 2
    log = RawLog(MemoryLogStore(1))
    log.append(0, batches[:half])
    log.make_durable()
    for _ in steps(log.store, 1):
        pass
    start = int(read_history_start(log.store, PARTITION).offset)
    log.append(0, batches[half:])
    log.make_durable()
    whole = make_log([*first, *second], 0, per_batch)
    expected = [entry for entry in fold_states(whole.store) if entry[0] > start]
    assert [entry for entry in fold_states(log.store) if entry[0] > start] == expected
    for start in steps(log.store, 300):
        assert fold_states(log.store)[-1] == expected[-1]
        check_left(log.store, start, dict(fold_states(whole.store))[start])
    assert LogOffset(start) == read_history_start(log.store, PARTITION).offset
