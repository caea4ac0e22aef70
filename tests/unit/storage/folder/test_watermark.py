"""The watermark file: reading it back, also after damage."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from model.ids import LogOffset, LogPartition
from storage.folder import watermark as module
from storage.folder.watermark import (
    SECTOR_SIZE,
    Watermark,
    WatermarkHeader,
    create_watermark,
    open_watermark,
)
from storage.log_store import FormatTooNew, StoreCorrupt, StoreFailed

P0, P1 = LogPartition(0), LogPartition(1)


def create(path: Path, partitions: int = 2) -> Watermark:
    return create_watermark(path, WatermarkHeader(partitions, "C" * 22))


def read(path: Path) -> tuple[int, list[int]]:
    opened = open_watermark(path)
    try:
        return opened.sequence, opened.offsets
    finally:
        opened.close()


def damage(path: Path, slot: int, slot_size: int = SECTOR_SIZE) -> None:
    with path.open("r+b") as file:
        file.seek(SECTOR_SIZE + slot * slot_size + slot_size // 2)
        file.write(b"\xff")
        if slot_size == SECTOR_SIZE:
            file.seek(SECTOR_SIZE + slot * slot_size)
            file.write(b"\xff")


def test_a_new_watermark(tmp_path: Path) -> None:
    made = create(tmp_path / "w")
    assert made.is_pristine
    assert (made.header.partitions, made.header.cluster_id) == (2, "C" * 22)
    made.close()
    made.close()
    assert read(tmp_path / "w") == (0, [0, 0])
    assert [entry.name for entry in tmp_path.iterdir()] == ["w"]


def test_marks_are_read_back_without_a_sync(tmp_path: Path) -> None:
    made = create(tmp_path / "w")
    made.mark({P1: LogOffset(7)}, 3)
    assert not made.is_pristine
    assert read(tmp_path / "w") == (3, [0, 7])
    made.mark({P0: LogOffset(1 << 62)}, 4)
    assert read(tmp_path / "w") == (4, [1 << 62, 7])
    made.close()


@pytest.mark.parametrize("partitions", [1, 50, 61, 62, 1000, 65_536])
def test_any_number_of_partitions(tmp_path: Path, partitions: int) -> None:
    made = create(tmp_path / "w", partitions)
    last = LogPartition(partitions - 1)
    for offset in range(1, 4):
        made.mark({last: LogOffset(offset)}, offset)
        made.sync()
    assert read(tmp_path / "w") == (3, [0] * (partitions - 1) + [3])
    made.close()


def test_fifty_partitions_take_one_sector_a_slot(tmp_path: Path) -> None:
    create(tmp_path / "w", 50).close()
    assert (tmp_path / "w").stat().st_size == 3 * SECTOR_SIZE


def test_a_torn_slot_leaves_what_the_last_sync_made_durable(tmp_path: Path) -> None:
    made = create(tmp_path / "w", 1000)
    slot_size = (tmp_path / "w").stat().st_size // 2 // SECTOR_SIZE * SECTOR_SIZE
    for number in range(1, 8):
        for step in range(3):
            made.mark({P0: LogOffset(10 * number + step)}, number)
        content = (tmp_path / "w").read_bytes()
        written = made._slot
        damage(tmp_path / "w", written, slot_size)
        assert read(tmp_path / "w")[1][0] == (10 * (number - 1) + 2 if number > 1 else 0)
        (tmp_path / "w").write_bytes(content)
        made.sync()
    made.close()


def test_two_torn_slots_are_refused(tmp_path: Path) -> None:
    create(tmp_path / "w").close()
    damage(tmp_path / "w", 0)
    damage(tmp_path / "w", 1)
    with pytest.raises(StoreCorrupt, match="neither of its slots is valid"):
        open_watermark(tmp_path / "w")


def test_reopening_does_not_write_over_the_newer_slot(tmp_path: Path) -> None:
    create(tmp_path / "w").close()
    for number in range(1, 6):
        opened = open_watermark(tmp_path / "w")
        opened.mark({P0: LogOffset(number)}, number)
        damage(tmp_path / "w", opened._slot)
        opened.close()
        assert read(tmp_path / "w")[1][0] == number - 1
        opened = open_watermark(tmp_path / "w")
        opened.mark({P0: LogOffset(number)}, number)
        opened.close()


def test_a_mark_during_a_sync_waits_for_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(tmp_path / "w")
    made.mark({P0: LogOffset(1)}, 1)
    begun, go_on = threading.Event(), threading.Event()

    def slow(_: int) -> None:
        begun.set()
        assert go_on.wait(60)

    monkeypatch.setattr(module.os, "fdatasync", slow)
    thread = threading.Thread(target=made.sync)
    thread.start()
    assert begun.wait(60)
    before = (tmp_path / "w").read_bytes()
    made.mark({P0: LogOffset(2)}, 2)
    made.mark({P1: LogOffset(3)}, 3)
    assert (tmp_path / "w").read_bytes() == before
    go_on.set()
    thread.join()
    monkeypatch.undo()
    assert read(tmp_path / "w") == (3, [2, 3])
    made.close()


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = create(tmp_path / "w")

    def fail(*_: object) -> int:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(module.os, "pwrite", fail)
        with pytest.raises(StoreFailed, match=r"write of the watermark failed: .*Input/output"):
            made.mark({}, 1)
    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fdatasync", fail)
        with pytest.raises(StoreFailed, match="fsync of the watermark failed"):
            made.sync()
    with pytest.raises(StoreFailed, match="open of the watermark failed"):
        open_watermark(tmp_path / "none")
    os.close(made._file)


def test_headers_that_are_not_ours(tmp_path: Path) -> None:
    create(tmp_path / "w").close()
    content = (tmp_path / "w").read_bytes()
    for damaged, kind, why in (
        (b"", StoreCorrupt, "not a watermark file"),
        (b"x" + content[1:], StoreCorrupt, "not a watermark file"),
        (content[:11] + b"\x05" + content[12:], FormatTooNew, "has format 5"),
        (content[:12] + b"\x01" + content[13:], StoreCorrupt, "wrong checksum"),
    ):
        (tmp_path / "w").write_bytes(damaged)
        with pytest.raises(kind, match=why):
            open_watermark(tmp_path / "w")


def test_cluster_ids_have_22_letters(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="22 characters"):
        create_watermark(tmp_path / "w", WatermarkHeader(1, "short"))
