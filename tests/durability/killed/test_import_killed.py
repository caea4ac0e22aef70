"""``kill -9`` in the calls of an import that change files: all of it is done, or nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from model.ids import GroupId, LogPartition, compute_log_partition
from storage.codec.batch_encoding import encode_batch
from storage.folder.replacement import finish_replacement
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_store import RocksLogStore
from storage.segments.folder import compute_segment_name
from tests.durability.killed import dying_import
from tests.durability.servers import build_shim
from tests.durability.stores import Content, read_all
from tests.support.storage.appends import append, mark_all, offset_key, offset_value

PARTITIONS = 2
STRIDE = 5


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_shim(tmp_path_factory.mktemp("shim"))


def make_segments(folder: Path) -> Path:
    log = folder / "segments" / "__consumer_offsets-0"
    log.mkdir(parents=True)
    batches = [
        encode_batch(3 * n, [(offset_key(f"g{n}", p), offset_value(p)) for p in range(3)], 5)
        for n in range(20)
    ]
    (log / compute_segment_name(0)).write_bytes(b"".join(batches))
    return log.parent


def make_old(folder: Path, *, with_group: bool) -> None:
    store = open_store(folder, partitions=PARTITIONS)
    if with_group:
        group = "old"
        partition = compute_log_partition(GroupId(group), PARTITIONS)
        append(store, {partition: [(offset_key(group), offset_value(1))]})
    store.write([], [(b"\x02", b"")])
    mark_all(store)
    store.close()


def read(store: Path) -> Content:
    opened = open_store(store, partitions=PARTITIONS)
    try:
        return read_all(opened)
    finally:
        opened.close()


@pytest.mark.parametrize("with_group", [False, True])
def test_a_killed_import_left_the_store_as_it_was_or_is_done(
    with_group: bool, scratch: Path, shim: Path
) -> None:
    segments, old = make_segments(scratch), scratch / "old"
    make_old(old, with_group=with_group)
    before = read(old)
    done = scratch / "done" / "store"
    shutil.copytree(old, done)
    dying_import.import_log(segments, done)
    after = read(done)
    assert before != after
    (scratch / "copies").mkdir()
    # One call of five, and every call of the end, where the store changes hands.
    copies = scratch / "copies"
    calls = dying_import.run(segments, old, copies, shim, 1, STRIDE)
    end = calls - calls % STRIDE - STRIDE
    for first in range(end + 2, end + STRIDE + 1):
        calls = max(calls, dying_import.run(segments, old, copies, shim, first, STRIDE))
    assert calls > 20, "so many calls there are at least"
    outcomes = []
    for number in range(1, calls):
        folder = scratch / "copies" / str(number)
        if folder.exists():
            finish_replacement(folder / "store")
            assert [entry.name for entry in folder.iterdir()] == ["store"]
            content = read(folder / "store")
            assert content in (before, after), f"killed in call {number}"
            outcomes.append(content == after)
    # Once it is done it is done, whoever was to finish it.
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}


def test_the_store_is_found_again_between_the_two_renames(tmp_path: Path) -> None:
    make_old(tmp_path / "store.replaced", with_group=True)
    make_old(tmp_path / "store.ready", with_group=False)
    finish_replacement(tmp_path / "store")
    assert [entry.name for entry in tmp_path.iterdir()] == ["store"]
    opened: RocksLogStore = open_store(tmp_path / "store", partitions=PARTITIONS)
    assert [opened.next_offset(LogPartition(p)) for p in range(PARTITIONS)] == [0, 0]
    opened.close()


def test_what_is_being_built_is_left_to_who_builds_it(tmp_path: Path) -> None:
    building = tmp_path / "store.building"
    opened = open_store(tmp_path / "store", partitions=PARTITIONS)
    building.mkdir()
    finish_replacement(tmp_path / "store")
    assert building.exists()
    opened.close()
    finish_replacement(tmp_path / "store")
    assert not building.exists()
