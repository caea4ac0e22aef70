"""When a torn tail of RocksDB's WAL may be cut off, on WAL files written byte by byte."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import crc32c
import pytest

from storage.rocks.wal_tail import cut_torn_tail

BLOCK = 32 << 10
SIZES = [50, 400, 70_000, 20, 33_000, 100]
"""Content lengths of the records: some span blocks."""


def fragment(kind: int, content: bytes) -> bytes:
    crc = crc32c.crc32c(bytes((kind,)) + content)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return struct.pack("<IHB", masked, len(content), kind) + content


def write_wal(path: Path, sizes: list[int]) -> list[int]:
    """Make a WAL with one record of each size; returns where each begins, and the end."""
    out, starts = b"", []
    for number, size in enumerate(sizes):
        left = struct.pack("<QI", 1 + 2 * number, 2) + os.urandom(size)
        is_first = True
        while left or is_first:
            room = BLOCK - len(out) % BLOCK
            if room < 7:
                out += bytes(room)
                continue
            if is_first:
                starts.append(len(out))
            part, left = left[: room - 7], left[room - 7 :]
            kind = (1 if not left else 2) if is_first else (4 if not left else 3)
            out += fragment(kind, part)
            is_first = False
    path.write_bytes(out)
    return [*starts, len(out)]


@pytest.fixture
def wal(tmp_path: Path) -> Path:
    (tmp_path / "000003.log").write_bytes(b"older")
    (tmp_path / "000009.log").touch()
    return tmp_path / "000007.log"


def spoil(path: Path, start: int, size: int, byte: bytes = b"\0") -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(byte * size)


@pytest.mark.parametrize("count", range(1, len(SIZES) + 1))
def test_a_spoilt_last_record_is_cut_whole(wal: Path, count: int) -> None:
    *starts, end = write_wal(wal, SIZES[:count])
    spoil(wal, end - 10, 10)
    assert cut_torn_tail(wal.parent, 2 * (count - 1)) == end - starts[-1]
    assert wal.stat().st_size == starts[-1]
    assert (wal.parent / "000003.log").read_bytes() == b"older"


@pytest.mark.parametrize("size", [1, 6, 7, 100, BLOCK, 3 * BLOCK])
@pytest.mark.parametrize("byte", [b"\0", b"\xff", b"\x01"])
def test_what_follows_the_last_record_is_cut(wal: Path, size: int, byte: bytes) -> None:
    end = write_wal(wal, SIZES)[-1]
    spoil(wal, end, size, byte)
    assert cut_torn_tail(wal.parent, 2 * len(SIZES)) == size
    assert wal.stat().st_size == end


def test_a_record_of_many_blocks_torn_in_its_middle(wal: Path) -> None:
    *starts, end = write_wal(wal, [50, 200_000])
    spoil(wal, BLOCK + 100, 4096)
    assert cut_torn_tail(wal.parent, 2) == end - starts[-1]


def test_nothing_is_cut_from_a_whole_log(wal: Path) -> None:
    end = write_wal(wal, SIZES)[-1]
    assert cut_torn_tail(wal.parent, 0) == 0
    assert wal.stat().st_size == end


def test_nothing_is_cut_where_something_marked_would_go(wal: Path) -> None:
    end = write_wal(wal, SIZES)[-1]
    spoil(wal, end - 10, 10)
    assert cut_torn_tail(wal.parent, 2 * len(SIZES)) == 0
    assert cut_torn_tail(wal.parent, 2 * len(SIZES) - 1) == 0
    assert wal.stat().st_size == end
    assert cut_torn_tail(wal.parent, 2 * len(SIZES) - 2) > 0


@pytest.mark.parametrize("record", range(len(SIZES) - 1))
def test_nothing_is_cut_where_a_record_follows(wal: Path, record: int) -> None:
    starts = write_wal(wal, SIZES)
    spoil(wal, starts[record] + 10, 3, b"\xa5")
    before = wal.read_bytes()
    assert cut_torn_tail(wal.parent, 0) == 0
    assert wal.read_bytes() == before


def test_a_folder_without_logs(tmp_path: Path) -> None:
    assert cut_torn_tail(tmp_path, 0) == 0
