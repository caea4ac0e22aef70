"""The free space and the reserve, on a disk whose free bytes the test sets."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cli.serve.disk_reserve import DiskSpace

KIB = 1 << 10
RESERVE, MIN_FREE = 64 * KIB, 256 * KIB


class Usage(NamedTuple):
    total: int
    used: int
    free: int


class Disk:
    """Space used by others; the reserve is counted separately."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reserve = folder / "reserve"
        self.size = 1_000 * KIB
        self.others = 0
        self._rooms: list[DiskSpace] = []
        monkeypatch.setattr(shutil, "disk_usage", self.read)

    def read(self, _: Path) -> Usage:
        used = self.others + (self.reserve.stat().st_size if self.reserve.exists() else 0)
        return Usage(self.size, used, max(self.size - used, 0))

    def room(self, reserve_bytes: int = RESERVE) -> DiskSpace:
        self._rooms.append(DiskSpace(self.reserve, reserve_bytes, MIN_FREE))
        return self._rooms[-1]

    def wait_for_threads(self) -> None:
        """Wait until nothing takes a reserve: what a thread logs belongs to this test."""
        for room in self._rooms:
            if room._taking is not None:
                room._taking.join(10)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk = Disk(tmp_path, monkeypatch)
    yield disk
    disk.wait_for_threads()


def wait_for(condition: Callable[[], bool], room: DiskSpace) -> None:
    room.free_bytes()
    assert room._taking is not None
    room._taking.join(10)
    assert condition()


def test_the_reserve_is_taken_where_there_is_room(disk: Disk) -> None:
    room = disk.room()
    room.prepare()
    assert disk.reserve.stat().st_size == RESERVE
    assert room.free_bytes() == disk.size - RESERVE


def test_without_room_there_is_none_and_what_it_lacks_is_not_free(disk: Disk) -> None:
    disk.others = disk.size - MIN_FREE - RESERVE + 1
    room = disk.room()
    room.prepare()
    assert not disk.reserve.exists()
    assert room.free_bytes() == MIN_FREE - 1


def test_it_is_given_up_when_the_disk_is_full_and_gives_no_room_to_new_work(disk: Disk) -> None:
    room = disk.room()
    room.prepare()
    disk.others = disk.size - RESERVE - MIN_FREE + 1
    assert room.free_bytes() < MIN_FREE
    assert disk.reserve.exists(), "there is enough for what was accepted"
    disk.others = disk.size - RESERVE - 1
    assert room.free_bytes() == 1
    assert not disk.reserve.exists()
    assert room.free_bytes() == 1


def test_it_is_taken_again_when_there_is_room_again(disk: Disk) -> None:
    room = disk.room()
    room.prepare()
    disk.others = disk.size
    room.free_bytes()
    disk.others = disk.size - MIN_FREE - RESERVE + 1
    assert room.free_bytes() == MIN_FREE - 1
    assert not disk.reserve.exists()
    disk.others = 0
    wait_for(disk.reserve.exists, room)
    assert room.free_bytes() == disk.size - RESERVE


def test_a_start_on_a_full_disk_makes_way_first(disk: Disk) -> None:
    disk.room().prepare()
    disk.others = disk.size - RESERVE
    room = disk.room()
    room.prepare()
    assert not disk.reserve.exists()
    assert room.free_bytes() == 0


@pytest.mark.parametrize("reserve_bytes", [0, RESERVE // 2, 2 * RESERVE])
def test_another_size_counts_from_the_next_start(disk: Disk, reserve_bytes: int) -> None:
    disk.room().prepare()
    disk.room(reserve_bytes).prepare()
    size = disk.reserve.stat().st_size if disk.reserve.exists() else 0
    assert size == reserve_bytes


def test_a_disk_that_has_no_place_for_it_is_as_before(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    room = disk.room()
    room.prepare()
    assert not disk.reserve.exists()
    assert room.free_bytes() == disk.size - RESERVE
