"""A table that is being replaced exists all the time."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from pipeline.tables.folder_exchange import exchange


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is of Linux")
def test_who_looks_finds_one_of_both(tmp_path: Path) -> None:
    table, writing = tmp_path / "table", tmp_path / "_writing"
    for folder in (table, writing):
        folder.mkdir()
        (folder / folder.name).touch()
    missing: list[str] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            if not table.exists():
                missing.append("table")

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for _ in range(501):
            assert exchange(writing, table)
    finally:
        is_over.set()
        watcher.join()
    assert missing == []
    assert (table / "_writing").exists()
    assert (writing / "table").exists()


def test_without_both_nothing_is_done(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    assert not exchange(tmp_path / "one", tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
