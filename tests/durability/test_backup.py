"""Backups: a prefix of the log, whole or not there, and restored only where nothing is wrong."""

from __future__ import annotations

import errno
import json
import threading
from contextlib import closing
from pathlib import Path

import pytest

import storage.transfer.backup
from model.ids import GroupId, LogPartition, compute_log_partition
from storage.log_store import FormatTooNew, StoreCorrupt, StoreError, StoreFailed
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_reader import open_store_reader
from storage.rocks.rocks_store import RocksLogStore
from storage.transfer.backup import (
    MANIFEST,
    SNAPSHOT_NAME,
    STORE_NAME,
    BackupRefused,
    NoBackup,
    check_files,
    make_backup,
    read_backup,
    restore_backup,
)
from storage.verify.stores import verify_store
from tests.durability.stores import PARTITIONS, Content, flip_bit, open_and_read, read_all
from tests.support.storage.appends import append, mark_all, offset_key, offset_value

MADE_AT_MS = 1_760_000_000_000


def _home(name: str) -> int:
    return compute_log_partition(GroupId(name), PARTITIONS)


@pytest.fixture
def live(scratch: Path) -> Path:
    return scratch / "live"


GROUPS = [
    [name for name in map("group-{}".format, range(40)) if _home(name) == partition]
    for partition in range(PARTITIONS)
]


def fill(store: RocksLogStore, rounds: int, records: int) -> None:
    """Commits to all partitions, of groups that belong there, acknowledged round by round."""
    for number in range(rounds):
        for partition, names in enumerate(GROUPS):
            pairs = [
                (offset_key(names[index % len(names)], index % 5), offset_value(number))
                for index in range(records)
            ]
            append(store, {partition: pairs})
        mark_all(store)


def open_filled(folder: Path) -> RocksLogStore:
    store = open_store(folder, partitions=PARTITIONS, cluster_id="C" * 22)
    fill(store, rounds=20, records=60)
    return store


def check_passes(store: Path) -> None:
    reader = open_store_reader(store)
    try:
        for report in verify_store(reader):
            assert report.violation is None, str(report.violation)
    finally:
        reader.close()


def test_a_backup_has_all_that_was_written(live: Path, scratch: Path) -> None:
    store = open_filled(live)
    made = make_backup(store, live, scratch / "backup", MADE_AT_MS)
    content = read_all(store)
    fill(store, rounds=3, records=60)
    store.close()
    assert not (live / SNAPSHOT_NAME).exists()
    assert sorted(entry.name for entry in scratch.iterdir()) == ["backup", "live"]
    assert read_backup(scratch / "backup") == made
    assert (made.cluster_id, made.made_at_ms) == ("C" * 22, MADE_AT_MS)
    check_files(scratch / "backup", made)
    check_passes(scratch / "backup" / STORE_NAME)
    restore_backup(scratch / "backup", made, scratch / "restored")
    assert open_and_read(scratch / "restored" / STORE_NAME) == content
    # The restored store is one of its own: it goes on, and the backup stays as it was.
    again = open_store(scratch / "restored" / STORE_NAME, partitions=PARTITIONS)
    assert again.cluster_id == "C" * 22
    assert [again.durable_offset(LogPartition(p)) for p in range(PARTITIONS)] == list(
        made.next_offsets
    )
    fill(again, rounds=1, records=10)
    again.close()
    check_files(scratch / "backup", made)
    assert open_and_read(live) != content


def test_a_backup_of_a_store_that_is_written_to_is_a_prefix(live: Path, scratch: Path) -> None:
    """Trigger: a backup in a thread, as a server makes it, while commits go on."""
    store = open_filled(live)
    for number in range(3):
        before = [store.durable_offset(LogPartition(p)) for p in range(PARTITIONS)]
        target = scratch / f"backup-{number}"
        thread = threading.Thread(target=make_backup, args=(store, live, target, MADE_AT_MS))
        thread.start()
        rounds = 0
        while thread.is_alive():
            fill(store, rounds=1, records=60)
            rounds += 1
        thread.join()
        assert rounds > 1, "nothing was written meanwhile"
        made = read_backup(target)
        assert all(end >= mark for end, mark in zip(made.next_offsets, before, strict=True))
        check_passes(target / STORE_NAME)
        found, whole = _read(target / STORE_NAME), read_all(store)
        for log, part in zip(whole.logs, found.logs, strict=True):
            assert part == log[: len(part)]
    store.close()


def _read(store: Path) -> Content:
    reader = open_store_reader(store)
    try:
        return read_all(reader)  # type: ignore[arg-type]
    finally:
        reader.close()


def test_a_backup_takes_no_name_that_is_taken(live: Path, scratch: Path) -> None:
    store = open_filled(live)
    (scratch / "taken").mkdir()
    (scratch / "taken" / "file").touch()
    (scratch / "file").touch()
    for target in (scratch / "taken", scratch / "file", scratch / "nowhere" / "backup"):
        with pytest.raises(BackupRefused):
            make_backup(store, live, target, MADE_AT_MS)
    assert sorted(e.name for e in scratch.iterdir()) == ["file", "live", "taken"]
    store.close()


@pytest.mark.parametrize(
    "step", ["_write_manifest", "_describe", "_link_or_copy", "create_watermark", "sync_folder"]
)
def test_a_backup_that_fails_leaves_nothing(
    step: str, live: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_filled(live)

    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(storage.transfer.backup, step, fail)
        with pytest.raises(StoreFailed, match="No space left"):
            make_backup(store, live, scratch / "backup", MADE_AT_MS)
    assert [entry.name for entry in scratch.iterdir()] == ["live"]
    assert not (live / SNAPSHOT_NAME).exists()
    fill(store, rounds=1, records=60)
    store.close()


def test_what_a_killed_backup_left_is_in_nobodys_way(live: Path, scratch: Path) -> None:
    store = open_filled(live)
    store.begin_snapshot().make(live / SNAPSHOT_NAME)
    store.close()
    store = open_store(live, partitions=PARTITIONS)
    make_backup(store, live, scratch / "backup", MADE_AT_MS)
    store.close()
    check_passes(scratch / "backup" / STORE_NAME)


# -------------------------------------------------------------------------------------- restoring


@pytest.fixture
def backup(live: Path, scratch: Path) -> Path:
    store = open_filled(live)
    make_backup(store, live, scratch / "backup", MADE_AT_MS)
    store.close()
    return scratch / "backup"


def test_a_bit_of_any_file_is_found_before_it_is_restored(backup: Path) -> None:
    made = read_backup(backup)
    assert {Path(name).suffix for name in made.files} >= {".sst", ".blob", ".log"}
    for name, facts in made.files.items():
        if not facts.bytes:
            continue
        flip_bit(backup / name, facts.bytes // 2, 3)
        with pytest.raises(StoreCorrupt, match="damaged"):
            check_files(backup, made)
        flip_bit(backup / name, facts.bytes // 2, 3)
    check_files(backup, made)


def test_a_file_that_is_gone_or_cut_is_found(backup: Path) -> None:
    made = read_backup(backup)
    name = next(name for name in made.files if name.endswith(".blob"))
    content = (backup / name).read_bytes()
    (backup / name).unlink()
    with pytest.raises(StoreCorrupt, match="No such file"):
        check_files(backup, made)
    (backup / name).write_bytes(content[:-1])
    with pytest.raises(StoreCorrupt, match="damaged"):
        check_files(backup, made)


def test_what_is_no_backup_is_not_restored(backup: Path, scratch: Path) -> None:
    with pytest.raises(NoBackup):
        read_backup(scratch / "nowhere")
    with pytest.raises(NoBackup):
        read_backup(backup / STORE_NAME)
    manifest = backup / MANIFEST
    content = json.loads(manifest.read_text())
    for text in ("", "[]", "{}", json.dumps(content | {"files": 3}), "\0"):
        manifest.write_text(text)
        with pytest.raises(StoreCorrupt):
            read_backup(backup)
    manifest.write_text(json.dumps(content | {"version": 99}))
    with pytest.raises(FormatTooNew):
        read_backup(backup)


def test_a_name_in_a_manifest_leads_nowhere_else(backup: Path, scratch: Path) -> None:
    manifest = backup / MANIFEST
    content = json.loads(manifest.read_text())
    (scratch / "secret").write_bytes(b"x")
    for name in ("../secret", "/etc/hostname", "store/../../secret", "other/file"):
        bad = content | {"files": content["files"] | {name: {"bytes": 1, "crc32c": 1}}}
        manifest.write_text(json.dumps(bad))
        with pytest.raises(StoreCorrupt):
            read_backup(backup)


def test_a_folder_that_holds_anything_is_not_restored_into(backup: Path, scratch: Path) -> None:
    made = read_backup(backup)
    data = scratch / "data"
    data.mkdir()
    (data / "topics").mkdir()
    with pytest.raises(BackupRefused):
        restore_backup(backup, made, data)
    assert [entry.name for entry in data.iterdir()] == ["topics"]


def test_a_restore_that_fails_leaves_nothing(
    backup: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = read_backup(backup)
    calls = 0

    def fail(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(storage.transfer.backup, "_sync", fail)
    with pytest.raises(StoreError):
        restore_backup(backup, made, scratch / "data")
    assert not (scratch / "data").exists()


@pytest.mark.parametrize("name", ["n" * 256, "\ud800", "ä" * 200])
def test_a_name_that_no_folder_can_have_is_refused(live: Path, scratch: Path, name: str) -> None:
    with closing(open_store(live, partitions=PARTITIONS)) as store, pytest.raises(BackupRefused):
        make_backup(store, live, scratch / name, MADE_AT_MS)


def test_the_longest_name_will_do(live: Path, scratch: Path) -> None:
    with closing(open_store(live, partitions=PARTITIONS)) as store:
        make_backup(store, live, scratch / ("n" * 255), MADE_AT_MS)


def test_no_link_leads_a_backup_elsewhere(live: Path, scratch: Path) -> None:
    elsewhere = scratch / "elsewhere"
    elsewhere.mkdir()
    (scratch / "link").symlink_to(elsewhere)
    (scratch / "dangling").symlink_to(scratch / "nowhere")
    (scratch / "loop").symlink_to(scratch / "loop")
    with closing(open_store(live, partitions=PARTITIONS)) as store:
        for target in ("link", "dangling", "loop", "loop/backup"):
            with pytest.raises(BackupRefused):
                make_backup(store, live, scratch / target, MADE_AT_MS)
        with pytest.raises(BackupRefused, match=r"resolves to .*elsewhere"):
            make_backup(store, live, scratch / "link" / "backup", MADE_AT_MS)
        with pytest.raises(BackupRefused, match="inside the store"):
            make_backup(store, live, live / "backup", MADE_AT_MS)
    assert not any(elsewhere.iterdir())


def test_a_backup_is_its_owners_alone(live: Path, scratch: Path) -> None:
    with closing(open_store(live, partitions=PARTITIONS)) as store:
        make_backup(store, live, scratch / "backup", MADE_AT_MS)
    assert (scratch / "backup").stat().st_mode & 0o777 == 0o700
