"""A folder for stores that are opened by the hundred."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
ROOM_BYTES = 48 << 20


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: opening a store waits for the disk many times."""
    if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK)):
        yield tmp_path
        return
    if shutil.disk_usage(MEMORY).free < ROOM_BYTES:
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="muster-faults-", dir=MEMORY))
    yield folder
    shutil.rmtree(folder)
