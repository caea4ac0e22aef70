"""A crash at any point of a checkpoint loses nothing, and what is damaged is refused."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from rocksdict import WriteBatch

from model.ids import LogOffset, LogPartition
from storage.log_store import StoreCorrupt, StoreFailed, StoreStalled
from storage.rocks import rocks_store
from storage.rocks.rocks_latest import POSITIONS_KEY
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_reader import open_store_reader
from storage.rocks.rocks_store import RocksLogStore
from tests.support.storage.appends import (
    append,
    compact,
    mark_all,
    offset_key,
    offset_value,
    write_checkpoint,
)

P0, P1 = LogPartition(0), LogPartition(1)


def commit(store: RocksLogStore, value: int, *numbers: int) -> None:
    """Commit the same value for keys of both partitions."""
    pairs = [(offset_key("g", number), offset_value(value)) for number in numbers]
    append(store, {0: pairs, 1: pairs})
    mark_all(store)


def delete(store: RocksLogStore, *numbers: int) -> None:
    append(store, {0: [(offset_key("g", number), None) for number in numbers]})
    mark_all(store)


def check(store: RocksLogStore) -> None:
    for partition in (P0, P1):
        assert list(store.latest(partition)) == compact(store.read_log(partition))


def check_copy(folder: Path, to: Path) -> tuple[int, int]:
    """What a kill leaves now is the fold of its log; returns the positions that it has."""
    shutil.copytree(folder, to)
    reader = open_store_reader(to)
    (packed,) = (value for key, value in reader.meta().items() if key == POSITIONS_KEY)
    for partition in (P0, P1):
        assert list(reader.latest(partition)) == compact(reader.read_log(partition))
    reader.close()
    store = open_store(to, partitions=9)
    check(store)
    store.close()
    first, second = struct.unpack(">2Q", packed)
    return first, second


def test_a_kill_between_any_two_steps_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = open_store(folder, partitions=2)
    commit(store, 1, 1, 2, 3)
    write_checkpoint(store)
    commit(store, 2, 2, 3, 4)
    delete(store, 3)
    before, after = (3, 3), (7, 6)
    assert check_copy(folder, tmp_path / "before") == before
    for number, _ in enumerate(store.write_checkpoint(1)):
        assert check_copy(folder, tmp_path / f"step-{number}") == before
        # Others go on: what they change must not be lost, nor come back.
        commit(store, 10 + number, number)
        delete(store, 4 - number)
        check(store)
        assert check_copy(folder, tmp_path / f"written-{number}") == before
    assert check_copy(folder, tmp_path / "after") == after
    store.close()
    last = (int(store._ends[0]), int(store._ends[1]))
    assert check_copy(folder, tmp_path / "closed") == last


def test_an_abandoned_one_counts_for_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=2)
    commit(store, 1, 1, 2, 3)
    steps = store.write_checkpoint(2)
    next(steps)
    assert list(store.write_checkpoint(2)) == [], "there is one"
    commit(store, 2, 2)
    steps.close()  # type: ignore[attr-defined]
    check(store)
    assert store.checkpoint_offset(P0) == 0
    write_checkpoint(store)
    assert (store.checkpoint_offset(P0), store.unsettled_keys) == (4, 0)
    check(store)
    store.close()


def test_a_disk_that_fails_in_it_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "store"
    store = open_store(folder, partitions=2)
    commit(store, 1, 1, 2, 3)
    write, calls = RocksLogStore._write, []

    def failing(self: RocksLogStore, batch: WriteBatch) -> None:
        calls.append(batch)
        if len(calls) == 2:
            raise StoreFailed("no space left on device")
        write(self, batch)

    monkeypatch.setattr(RocksLogStore, "_write", failing)
    steps = store.write_checkpoint(2)
    assert next(steps)
    with pytest.raises(StoreFailed):
        list(steps)
    assert check_copy(folder, tmp_path / "failed") == (0, 0)
    monkeypatch.undo()
    store.close()


def test_a_stall_in_it_is_told_and_the_step_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path, partitions=2)
    commit(store, 1, 1, 2, 3)
    write, is_stalled = RocksLogStore._write, [True]

    def stalling(self: RocksLogStore, batch: WriteBatch) -> None:
        if is_stalled[0]:
            raise StoreStalled("for now")
        write(self, batch)

    monkeypatch.setattr(RocksLogStore, "_write", stalling)
    told = []
    for is_written in store.write_checkpoint(3):
        told.append(is_written)
        is_stalled[0] = is_written
        if not is_written and len(told) == 1:
            # It is part of the step that is tried again.
            delete(store, 2)
    assert told == [False, True, False, True, False]
    check(store)
    assert store.unsettled_keys == 0
    is_stalled[0] = False
    store.close()


def test_too_much_that_waits_is_settled_or_stalls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rocks_store, "UNSETTLED_KEYS_MAX", 5)
    store = open_store(tmp_path, partitions=2)
    commit(store, 1, 1, 2, 3)
    commit(store, 2, 1)
    assert store.checkpoint_offset(P0) == 3, "nobody makes checkpoints, so the store does"
    commit(store, 3, 4, 5, 6)
    steps = store.write_checkpoint(1)
    next(steps)
    with pytest.raises(StoreStalled, match="a checkpoint has to write some changes first"):
        commit(store, 4, 1)
    assert all(steps)
    commit(store, 4, 1)
    check(store)
    store.close()


def remove_positions(store: RocksLogStore) -> None:
    batch = WriteBatch(raw_mode=True)
    batch.delete(POSITIONS_KEY, store._families.handles["meta"])
    store._write(batch)


def move_positions_on(store: RocksLogStore) -> None:
    batch = WriteBatch(raw_mode=True)
    batch.put(POSITIONS_KEY, struct.pack(">2Q", 99, 0), store._families.handles["meta"])
    store._write(batch)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (remove_positions, "it does not say up to where its last checkpoint is true"),
        (move_positions_on, "log partition 0 ends at offset 1, its last checkpoint at 99"),
    ],
)
def test_positions_that_are_lost_or_wrong_are_refused(
    spoil: Callable[[RocksLogStore], None], told: str, tmp_path: Path
) -> None:
    folder = tmp_path / "store"
    store = open_store(folder, partitions=2)
    commit(store, 1, 1)
    write_checkpoint(store)
    spoil(store)
    store.sync()
    shutil.copytree(folder, tmp_path / "killed")
    store.close()
    with pytest.raises(StoreCorrupt, match=told):
        open_store(tmp_path / "killed", partitions=2)


def test_a_reader_beside_a_writer_reads_what_no_checkpoint_has(tmp_path: Path) -> None:
    store = open_store(tmp_path, partitions=2)
    commit(store, 1, 1, 2)
    write_checkpoint(store)
    commit(store, 2, 2)
    reader = open_store_reader(tmp_path)
    keys = [offset_key("g", number) for number in (1, 2, 3)]
    found = reader.get_many_latest(P0, keys)
    assert [entry and entry.offset for entry in found] == [LogOffset(0), LogOffset(2), None]
    assert [entry.offset for entry in reader.latest(P0)] == [0, 2]
    reader.close()
    store.close()
