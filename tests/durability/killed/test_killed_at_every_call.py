"""``kill -9`` in every call that changes a file: while a store is made, written to, and opened."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.durability.killed import dying
from tests.durability.servers import build_shim
from tests.durability.stores import Content, make_store, open_and_read

STRIDE = 2
RECOVERIES = 240
"""More than opening a store makes calls that change files."""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_shim(tmp_path_factory.mktemp("shim"))


def read_told(folder: Path, number: int) -> int:
    told = folder.with_name(f"{folder.name}.told.{number}")
    return int(told.read_text()) if told.exists() else 0


def test_what_was_acknowledged_is_there_and_each_write_is_whole(scratch: Path, shim: Path) -> None:
    folder = scratch / "stores"
    folder.mkdir()
    calls = dying.run("write", folder, shim)
    assert calls > 30, "so many calls there are at least"
    partly = 0
    for number in range(1, calls):
        if not (folder / str(number)).exists():
            continue
        content = open_and_read(folder / str(number))
        ends = {len(log) for log in content.logs}
        assert len(ends) == 1, "a write is in all partitions or in none"
        (end,) = ends
        told = read_told(folder, number)
        assert told <= end <= told + 1, f"killed in call {number}"
        assert content.side in (side_of(end), side_of(end - 1))
        partly += 0 < end < dying.WRITES
    assert partly > 10


def side_of(writes: int) -> tuple[tuple[bytes, bytes], ...]:
    """The side records after so many writes."""
    return ((b"side", b"%d" % (writes - 1)),) if writes > 0 else ()


def test_a_recovery_that_is_killed_again_and_again_ends_in_the_same_state(
    scratch: Path, shim: Path
) -> None:
    whole = scratch / "whole"
    expected: Content = make_store(whole)
    folder = scratch / "stores"
    for number in range(1, RECOVERIES, STRIDE):
        shutil.copytree(whole, folder / str(number))
    for _ in range(2):
        calls = dying.run("open", folder, shim)
        assert calls > 5, "so many calls there are at least"
    for number in range(1, calls, STRIDE):
        assert open_and_read(folder / str(number)) == expected, f"killed in call {number}"
