"""Temporary folders: those of killed processes are removed, those of live ones are kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from model.ids import LogPartition
from storage.folder.unfinished import UNFINISHED_PREFIX, make_folder, remove_abandoned
from storage.rocks.rocks_opening import open_store
from storage.rocks.rocks_reader import READER_PREFIX, open_store_reader
from storage.segments.segment_writer import create_segments
from tests.groups import CHECKOUT
from tests.support.storage.appends import append, mark_all, offset_key, offset_value

DYING = """
import os, signal, sys
from pathlib import Path
from storage.folder.unfinished import UNFINISHED_PREFIX, make_folder

with make_folder(Path(sys.argv[1]), UNFINISHED_PREFIX) as folder:
    (folder / "large").write_bytes(b"x" * 1_000)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def die_within(parent: Path) -> None:
    done = subprocess.run([sys.executable, "-c", DYING, str(parent)], cwd=CHECKOUT)
    assert done.returncode == -signal.SIGKILL


def unfinished(parent: Path) -> list[Path]:
    return sorted(parent.glob(f"{UNFINISHED_PREFIX}*"))


def test_what_a_kill_leaves_the_next_one_removes(tmp_path: Path) -> None:
    """Regression: each killed backup or export left hard links to all files of the store."""
    die_within(tmp_path)
    assert len(unfinished(tmp_path)) == 1
    with create_segments(tmp_path / "export") as writer:
        writer.write_partition(LogPartition(0), [])
        assert len(unfinished(tmp_path)) == 1, "its own"
    assert unfinished(tmp_path) == []
    assert (tmp_path / "export").is_dir()


def test_who_is_alive_keeps_its_folder(tmp_path: Path) -> None:
    with make_folder(tmp_path, UNFINISHED_PREFIX) as first:
        with make_folder(tmp_path, UNFINISHED_PREFIX) as second:
            assert unfinished(tmp_path) == sorted([first, second])
        remove_abandoned(tmp_path, UNFINISHED_PREFIX)
        assert unfinished(tmp_path) == [first]
    assert unfinished(tmp_path) == []


def test_an_error_leaves_nothing_and_a_link_is_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"{UNFINISHED_PREFIX}link").symlink_to(elsewhere)
    with suppress(ZeroDivisionError), make_folder(tmp_path, UNFINISHED_PREFIX) as folder:
        (folder / "file").write_bytes(b"x")
        raise ZeroDivisionError
    assert elsewhere.is_dir()
    assert [path.name for path in unfinished(tmp_path)] == [f"{UNFINISHED_PREFIX}link"]


def test_a_reader_removes_what_killed_readers_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.rocks.rocks_reader.gettempdir", lambda: str(tmp_path))
    left = tmp_path / f"{READER_PREFIX}killed"
    left.mkdir()
    (left / "CURRENT").symlink_to(os.devnull)
    store = open_store(tmp_path / "store", partitions=1)
    append(store, {0: [(offset_key("g"), offset_value(1))]})
    mark_all(store)
    store.close()
    reader = open_store_reader(tmp_path / "store")
    assert not left.exists()
    assert len(list(tmp_path.glob(f"{READER_PREFIX}*"))) == 1
    reader.close()
    assert list(tmp_path.glob(f"{READER_PREFIX}*")) == []
