"""Replacement of a store: at any moment, a process finds either the old or the new store."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cli.data_folder import DataFolder
from model.ids import LogPartition
from storage.folder.replacement import StoreUnfinished, finish_replacement, replacing
from storage.log_store import StoreCorrupt, StoreFailed, StoreLocked
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_store import RocksLogStore
from tests.groups import CHECKOUT
from tests.support.storage.appends import append, mark_all, offset_key, offset_value


def fill(store: RocksLogStore, group: str) -> None:
    append(store, {0: [(offset_key(group), offset_value(1))]})
    mark_all(store)


def make_store(folder: Path, group: str = "old") -> Path:
    store = open_store(folder, partitions=1)
    fill(store, group)
    store.close()
    return folder


def groups_of(folder: Path) -> list[str]:
    store = open_store(folder, partitions=1)
    found = list(map(str, store.offset_group_ids(LogPartition(0))))
    store.close()
    return found


def replace_store(folder: Path, group: str = "new") -> None:
    """Replace as an import into a store with groups does: copy the old store and add to it."""
    with replacing(folder) as replacement:
        replacement.copy_old()
        store = open_store(replacement.building, partitions=1)
        fill(store, group)
        store.close()


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_store_is_replaced(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    replace_store(store)
    assert groups_of(store) == ["new", "old"]
    assert names_in(tmp_path) == ["store"]


# ------------------------------------------------------------------------- what is not a store


@pytest.mark.parametrize("is_empty", [True, False])
def test_a_store_without_its_watermark_is_not_taken_for_none(
    tmp_path: Path, is_empty: bool
) -> None:
    store = make_store(tmp_path / "store")
    (store / "watermark").unlink()
    if is_empty:
        for file in (store / "rocksdb").iterdir():
            file.unlink()
    before = names_in(store)
    with pytest.raises(StoreCorrupt, match="watermark is missing: restore"):
        replace_store(store)
    assert names_in(store) == before
    assert names_in(tmp_path) == ["store"]


def test_a_folder_in_which_a_store_was_only_begun_is_none(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    (store / "lock").touch()
    (store / "watermark.new").touch()
    replace_store(store)
    assert groups_of(store) == ["new"]


def begin_first_store(store: Path, *, with_lock: bool) -> Path:
    """Leave the folder as a restore or import of its first store does when it is killed."""
    building = store.with_name("store.building")
    (building / "rocksdb").mkdir(parents=True)
    (building / "rocksdb/CURRENT").touch()
    if with_lock:
        store.mkdir()
        (store / "lock").touch()
    return building


@pytest.mark.parametrize("with_lock", [False, True])
def test_where_the_first_store_was_cut_off_no_empty_one_is_made(
    tmp_path: Path, with_lock: bool
) -> None:
    store = tmp_path / "store"
    building = begin_first_store(store, with_lock=with_lock)
    for _ in range(2):
        with pytest.raises(StoreUnfinished, match=f"run it again, or remove {building} to start"):
            open_store(store, partitions=1)
        with pytest.raises(StoreUnfinished):
            finish_replacement(store)
    replace_store(store)
    assert groups_of(store) == ["new"]
    assert names_in(tmp_path) == ["store"]


def test_who_removes_what_was_cut_off_begins_with_an_empty_store(tmp_path: Path) -> None:
    shutil.rmtree(begin_first_store(tmp_path / "store", with_lock=True))
    assert groups_of(tmp_path / "store") == []


def test_the_first_store_is_announced_before_its_folder_is_made(tmp_path: Path) -> None:
    store = tmp_path / "store"
    begin_first_store(store, with_lock=False)
    with suppress(KeyError), replacing(store) as replacement:
        assert names_in(tmp_path) == ["store", "store.building"]
        assert names_in(replacement.building) == []
        with pytest.raises(StoreLocked):
            finish_or_open(store)
        raise KeyError
    assert names_in(tmp_path) == []


def finish_or_open(store: Path) -> None:
    """A starting server must not touch what another process is building."""
    finish_replacement(store)
    open_store(store, partitions=1)


# -------------------------------------------------------------------------- links, mount points


def test_a_store_that_is_a_link_stays_where_it_is(tmp_path: Path) -> None:
    disk = tmp_path / "large"
    data = DataFolder(tmp_path / "data")
    make_store(disk / "store")
    data.path.mkdir()
    data.store.symlink_to(disk / "store")
    for number in range(3):
        replace_store(data.store, f"g{number}")
        assert data.store.is_symlink()
        assert names_in(data.path) == names_in(disk) == ["store"]
    data.prepare()
    assert groups_of(data.store) == ["g0", "g1", "g2", "old"]


def test_a_link_to_nothing_yet_is_where_the_store_comes(tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    link = tmp_path / "store"
    link.symlink_to(tmp_path / "large/store")
    replace_store(link)
    assert link.is_symlink()
    assert groups_of(tmp_path / "large/store") == ["new"]


def test_a_mount_point_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "store")
    monkeypatch.setattr(Path, "is_mount", lambda self: self == store)
    with pytest.raises(StoreFailed, match="mount point"), replacing(store):
        raise AssertionError("it was begun")
    assert groups_of(store) == ["old"]


# ------------------------------------------------------------------------------ the last step


def on_rename(monkeypatch: pytest.MonkeyPatch, name: str, do: Callable[[Path, Path], None]) -> None:
    """Call ``do`` before a folder with this name is renamed."""
    rename = Path.rename

    def hooked(self: Path, target: Path) -> Path:
        if self.name == name:
            do(self, target)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", hooked)


OPEN = """
import sys
from storage.log_store import StoreLocked
from storage.rocks.rocks_opening import open_store
print("opening", flush=True)
try:
    store = open_store(sys.argv[1], partitions=1)
    print(*store.offset_group_ids(0))
    store.close()
except StoreLocked:
    print("in use")
"""


@pytest.mark.parametrize("name", ["store.building", "store", "store.ready"])
def test_who_opens_the_store_meanwhile_waits_for_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Another process opens the store between two renames and must wait for the second one."""
    store = make_store(tmp_path / "store")
    others: list[subprocess.Popen[str]] = []

    def open_in_another_process(folder: Path, target: Path) -> None:
        command = [sys.executable, "-c", OPEN, str(store)]
        other = subprocess.Popen(command, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True)
        others.append(other)
        assert other.stdout is not None
        assert other.stdout.readline() == "opening\n"
        # Give it time to misbehave. The test is right even if the time is too short.
        with suppress(subprocess.TimeoutExpired):
            other.wait(0.2)

    on_rename(monkeypatch, name, open_in_another_process)
    replace_store(store)
    (found,) = (other.communicate(timeout=60)[0] for other in others)
    assert found in ("new old\n", "in use\n")
    monkeypatch.undo()
    assert groups_of(store) == ["new", "old"]
    assert names_in(tmp_path) == ["store"]


@pytest.mark.parametrize("name", ["store.building", "store", "store.ready"])
def test_an_error_in_the_last_step_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    store = make_store(tmp_path / "store")
    failures = iter([OSError(errno.EBUSY, "Device or resource busy")])

    def fail(folder: Path, target: Path) -> None:
        if (failure := next(failures, None)) is not None:
            raise failure

    on_rename(monkeypatch, name, fail)
    with pytest.raises(StoreFailed, match="busy"):
        replace_store(store)
    assert names_in(tmp_path) == ["store"]
    finish_replacement(store)
    assert groups_of(store) == ["old"]
    replace_store(store)
    assert groups_of(store) == ["new", "old"]


def test_an_error_that_cannot_be_undone_says_what_will_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "store")

    def fail(folder: Path, target: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    on_rename(monkeypatch, "store.ready", fail)
    with pytest.raises(StoreFailed, match="replace it when the store is next opened"):
        replace_store(store)
    monkeypatch.undo()
    assert groups_of(store) == ["new", "old"]


def test_what_is_in_the_way_of_the_last_step_is_said_before_it(tmp_path: Path) -> None:
    """A replaced store may be impossible to remove, for example if another user owns it."""
    store = make_store(tmp_path / "store")
    (tmp_path / "store.replaced").write_text("not a folder")
    replace_store(store)
    assert names_in(tmp_path) == ["store"]
    stuck = tmp_path / "store.replaced" / "inner"
    stuck.mkdir(parents=True)
    (stuck / "file").touch()
    if os.geteuid() == 0:
        pytest.skip("the root user can remove it")
    stuck.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(StoreFailed, match=r"store\.replaced"):
            replace_store(store, "newer")
    finally:
        stuck.chmod(stat.S_IRWXU)
    assert groups_of(store) == ["new", "old"]


def test_an_old_store_comes_back_where_nothing_took_its_place(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store")
    store.rename(tmp_path / "store.replaced")
    assert groups_of(store) == ["old"]
    assert names_in(tmp_path) == ["store"]


@pytest.mark.parametrize("opens", [open_store, lambda store, partitions: finish_replacement(store)])
def test_a_replacement_that_is_left_to_do_waits_for_who_has_the_store(
    tmp_path: Path, opens: Callable[..., object]
) -> None:
    store = open_store(tmp_path / "store", partitions=1)
    make_store(tmp_path / "store.ready", "new")
    with pytest.raises(StoreLocked):
        opens(tmp_path / "store", partitions=1)
    fill(store, "old")
    store.close()
    assert groups_of(tmp_path / "store") == ["new"]


# --------------------------------------------------------------------------------- durability


def test_tables_that_cannot_be_linked_are_on_the_disk_before_the_old_ones_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "store")
    load = open_store(store, partitions=1)
    for family in load._families.families.values():
        family.flush()
    load.close()
    synced: set[str] = set()
    fsync = os.fsync

    def noting(handle: int) -> None:
        synced.add(str(os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    def no_links(source: object, target: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fsync", noting)
    monkeypatch.setattr(os, "link", no_links)
    with replacing(store) as replacement:
        replacement.copy_old()
        files = [file for file in (replacement.building / "rocksdb").iterdir() if file.is_file()]
        assert any(file.suffix == ".sst" for file in files)
        places = [*files, replacement.building / "rocksdb", replacement.building / "watermark"]
        assert {str(place) for place in places} <= synced
        open_store(replacement.building, partitions=1).close()
