"""``kill -9`` before each call of a restore that changes a file: no empty store in its place."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from itertools import count
from pathlib import Path

import pytest

from cli.data_folder import DataFolder
from cli.errors import CommandError, ExitCode
from storage.folder.replacement import StoreUnfinished
from storage.rocks.rocks_opening import open_store
from storage.transfer.backup import make_backup, read_backup, restore_backup
from tests.durability.stores import Content, read_all
from tests.support.cli.log_files import invoke
from tests.support.storage.appends import append, mark_all, offset_key, offset_value

PARTITIONS = 2


CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "open", "fcntl.flock"}
"""Of Python's audit events; a restore calls nothing else that changes a file."""


def restore(backup: Path, data: Path, calls: int) -> bool:
    """Whether it came to its end in a process that lives for so many calls."""
    found = read_backup(backup)
    child = os.fork()
    if child == 0:
        left = calls

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            if event in CHANGES:
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1

        try:
            sys.addaudithook(hook)
            restore_backup(backup, found, data)
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL), f"child {calls} ended with {status}"
    return status == 0


def read(store: Path) -> Content:
    opened = open_store(store, partitions=PARTITIONS)
    try:
        return read_all(opened)
    finally:
        opened.close()


def make(folder: Path) -> tuple[Path, Content]:
    store = open_store(folder / "store", partitions=PARTITIONS)
    append(store, {1: [(offset_key("g"), offset_value(5))]})
    store.sync()
    mark_all(store)
    make_backup(store, folder / "store", folder / "backup", 0)
    content = read_all(store)
    store.close()
    return folder / "backup", content


def is_refused(data: Path) -> bool:
    """What a server says of the folder, before it makes anything in it."""
    before = sorted(data.iterdir())
    try:
        DataFolder(data).prepare()
    except CommandError as error:
        message = str(error)
    else:
        return False
    assert "run it again" in message
    assert sorted(data.iterdir()) == before
    with pytest.raises(StoreUnfinished):
        open_store(data / "store", partitions=PARTITIONS)
    return True


def test_a_killed_restore_is_refused_until_it_is_done_again(scratch: Path) -> None:
    backup, content = make(scratch)
    outcomes = []
    for number in count():
        data, again = scratch / str(number), scratch / f"again-{number}"
        if restore(backup, data, number):
            break
        if not data.exists() or not any(data.iterdir()):
            outcomes.append("nothing")
            continue
        shutil.copytree(data, again)
        restored = invoke("restore", backup, "--data-dir", again, "-q")
        assert restored.exit_code == 0, (number, restored.error)
        assert [entry.name for entry in again.iterdir()] == ["store"]
        assert read(again / "store") == content
        if is_refused(data):
            outcomes.append("refused")
        else:
            assert read(data / "store") == content, f"killed in call {number}"
            outcomes.append("done")
    assert outcomes == sorted(outcomes, key=["nothing", "refused", "done"].index)
    assert set(outcomes) == {"nothing", "refused", "done"}
    assert len(outcomes) > 20, "so many calls there are at least"


def test_a_restore_that_is_killed_again_is_done_the_third_time(scratch: Path) -> None:
    """What the first has left is cleared by the second, which is killed anywhere."""
    backup, content = make(scratch)
    first = scratch / "first"
    assert not restore(backup, first, 20)
    assert is_refused(first)
    for number in count(0, 3):
        data = scratch / str(number)
        shutil.copytree(first, data)
        if restore(backup, data, number):
            break
        if not is_refused(data):
            assert read(data / "store") == content, f"killed in call {number}"
            continue
        restored = invoke("restore", backup, "--data-dir", data, "-q")
        assert restored.exit_code == 0, (number, restored.error)
        assert read(data / "store") == content


def test_a_restore_that_was_done_is_not_done_over_what_was_served_since(tmp_path: Path) -> None:
    backup, _ = make(tmp_path)
    data = tmp_path / "data"
    for _ in range(2):
        assert invoke("restore", backup, "--data-dir", data, "-q").exit_code == 0
    read(data / "store")
    refused = invoke("restore", backup, "--data-dir", data, "-q")
    assert refused.exit_code == ExitCode.PRECONDITION
    assert "is not empty (it has store)" in refused.error
