"""Open files of the topic store: created on purpose, never by a read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.topics.log.open_files import OpenFiles
from model.errors import ErrorCode
from tests.unit.gateway.topics.store_rig import KEY, a_batch, run_store, segment_files


def test_who_asks_for_a_file_that_is_gone_does_not_make_it(tmp_path: Path) -> None:
    files = OpenFiles(4)
    with pytest.raises(FileNotFoundError):
        files.get(tmp_path / "gone")
    assert not list(tmp_path.iterdir())
    assert len(files) == 0


def test_a_file_that_is_begun_can_be_asked_for(tmp_path: Path) -> None:
    files = OpenFiles(4)
    files.create(tmp_path / "new")
    descriptor = files.get(tmp_path / "new")
    assert files.get(tmp_path / "new") == descriptor
    files.forget(tmp_path / "new")
    files.get(tmp_path / "new")
    files.close()


async def test_records_whose_file_is_gone_are_an_error_and_leave_no_file(tmp_path: Path) -> None:
    async with run_store(tmp_path) as store:
        store.append(a_batch())
        (segment,) = segment_files(tmp_path)
        store.topics._logs._files.forget(segment)
        segment.unlink()
        assert store.read(0).error == ErrorCode.KAFKA_STORAGE_ERROR
        assert store.offset(1, KEY).error == ErrorCode.KAFKA_STORAGE_ERROR
        assert store.append(a_batch()).error == ErrorCode.KAFKA_STORAGE_ERROR
        assert not segment.exists()
