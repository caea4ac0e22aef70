"""Crashes of the in-memory store."""

from __future__ import annotations

import pytest

from model.ids import LogOffset, LogPartition
from storage.log_store import StoreError, WatermarkViolation
from tests.support.memory import MemoryLogStore
from tests.support.storage.appends import append, compact, make_append, mark_all

P0 = LogPartition(0)


def filled() -> MemoryLogStore:
    """A store with one synced write and three unsynced ones."""
    store = MemoryLogStore(2)
    append(store, {0: [(b"a", b"0")], 1: [(b"a", b"0")]})
    mark_all(store)
    append(store, {0: [(b"a", b"1"), (b"b", b"1")]})
    store.write([make_append(1, 1, [(b"a", None)])], [(b"side", b"2")])
    append(store, {0: [(b"b", None)]})
    return store


@pytest.mark.parametrize(
    ("survivors", "ends", "sides"),
    [
        (0, [1, 1], []),
        (1, [3, 1], []),
        (2, [3, 2], [b"2"]),
        (3, [4, 2], [b"2"]),
        (99, [4, 2], [b"2"]),
    ],
)
def test_a_crash_keeps_the_first_writes_whole(
    survivors: int, ends: list[int], sides: list[bytes]
) -> None:
    store = filled()
    assert store.unsynced_writes == 3
    found = store.crash(survivors)
    assert found.unsynced_writes == 0
    assert [found.next_offset(LogPartition(p)) for p in range(2)] == ends
    assert [value for _, value in found.side()] == sides
    for partition in map(LogPartition, range(2)):
        assert list(found.latest(partition)) == compact(found.read_log(partition))
    assert found.cluster_id == store.cluster_id
    mark_all(found)
    append(found, {0: [(b"c", b"v")]})


def test_a_crashed_store_is_closed() -> None:
    store = filled()
    store.crash()
    with pytest.raises(StoreError, match="closed"):
        store.sync()
    with pytest.raises(StoreError, match="closed"):
        list(store.latest(P0))


def test_a_closed_store_has_lost_nothing() -> None:
    store = filled()
    store.close()
    assert store.unsynced_writes == 0
    assert store.crash().next_offset(P0) == 4


def test_a_mark_above_the_disk_is_a_violation() -> None:
    store = filled()
    store._marked[0] = 2
    with pytest.raises(WatermarkViolation, match="log partition 0 ends at offset 1"):
        store.crash()


def test_what_survived_can_be_marked_at_once() -> None:
    found = filled().crash(1)
    found.mark_durable({P0: LogOffset(3)})
    assert found.crash().next_offset(P0) == 3


def test_a_store_needs_a_partition() -> None:
    with pytest.raises(ValueError, match="at least one partition"):
        MemoryLogStore(0)
