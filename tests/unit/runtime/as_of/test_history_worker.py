"""What the process that reads the past answers where the log cannot be opened."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from coordinator.runtime.as_of import history_worker
from coordinator.runtime.as_of.history_worker import Damaged, HistoryReader, NoMemory
from coordinator.runtime.as_of.log_pages import FromOffset, PageQuestion
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import LogOffset, LogPartition
from storage.log_store import StoreError

QUESTION = PageQuestion(LogPartition(0), FromOffset(LogOffset(0)), LogOffset(1))


@pytest.mark.parametrize(
    ("cause", "answer"),
    [
        (OSError(errno.ENOMEM, "Cannot allocate memory"), NoMemory()),
        (MemoryError(), NoMemory()),
        (OSError(errno.EIO, "Input/output error"), Damaged("it cannot be opened")),
    ],
)
def test_a_store_that_cannot_be_opened_for_want_of_memory_is_not_damaged(
    cause: Exception, answer: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bug: at its limit the process opened the folder of a snapshot and not the store in it."""

    def refuse(folder: Path) -> object:
        raise StoreError("it cannot be opened") from cause

    monkeypatch.setattr(history_worker, "open_store_reader", refuse)
    assert HistoryReader(tmp_path, CoordinatorSettings()).read(QUESTION) == answer
