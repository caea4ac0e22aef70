"""Truncation of a torn tail of RocksDB's write-ahead log (WAL) that RocksDB itself does not accept.

A power cut may leave the last record of the WAL half written. RocksDB accepts this if the file
simply ends there. If zeros or stale bytes follow, it refuses to open, because they might hide
acknowledged records. The watermark rules that out: ``cut_torn_tail`` truncates the file if
everything marked durable lies before the damage and no readable record follows it.

RocksDB's log format: blocks of 32 KiB. A record is one full fragment, or a first, middle and last
fragments. A fragment has a masked CRC-32C over type and content, a length and a type.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import crc32c

_BLOCK_SIZE = 32 << 10
_FRAGMENT_HEAD = struct.Struct("<IHB")
_BATCH_HEAD = struct.Struct("<QI")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_CRC_MASK_DELTA = 0xA282EAD8


class _Fragment(NamedTuple):
    start: int
    end: int
    type: int


def cut_torn_tail(folder: Path, marked_sequence: int) -> int:
    """Truncate the newest WAL file in RocksDB's folder before its torn tail.

    Returns the number of bytes removed. Returns 0 and changes nothing if there is no damage, if
    readable records follow the damage, or if the intact part ends before ``marked_sequence``.
    """
    path = _find_newest(folder)
    if path is None:
        return 0
    data = path.read_bytes()
    end, sequence = _find_damage(data)
    if end == len(data) or sequence < marked_sequence or _has_readable(data, end):
        return 0
    with path.open("r+b") as file:
        file.truncate(end)
        os.fsync(file.fileno())
    return len(data) - end


def _find_newest(folder: Path) -> Path | None:
    """The non-empty WAL file with the highest number."""
    files = [path for path in folder.glob("*.log") if path.stem.isdigit() and path.stat().st_size]
    return max(files, key=lambda path: int(path.stem), default=None)


def _find_damage(data: bytes) -> tuple[int, int]:
    """Find where the intact records end; also returns their last sequence number."""
    end = sequence = 0
    content = b""
    start = 0
    for fragment in _read_fragments(data, 0):
        if fragment.type in (_FULL, _FIRST):
            content, start = b"", fragment.start
        content += data[fragment.start + _FRAGMENT_HEAD.size : fragment.end]
        if fragment.type in (_FULL, _LAST):
            if len(content) < _BATCH_HEAD.size:
                return start, sequence
            first, count = _BATCH_HEAD.unpack_from(content)
            end, sequence = fragment.end, first + max(count, 1) - 1
    return end, sequence


def _has_readable(data: bytes, damage: int) -> bool:
    """Whether a record begins after the damaged one, in its block or a later one."""
    starts = list(range((damage // _BLOCK_SIZE + 1) * _BLOCK_SIZE, len(data), _BLOCK_SIZE))
    if damage + _FRAGMENT_HEAD.size <= len(data):
        _, length, _ = _FRAGMENT_HEAD.unpack_from(data, damage)
        starts.append(damage + _FRAGMENT_HEAD.size + length)
    return any(
        fragment.type in (_FULL, _FIRST)
        for start in starts
        for fragment in _read_fragments(data, start)
    )


def _read_fragments(data: bytes, pos: int) -> Iterator[_Fragment]:
    """Iterate over fragments from a position on, up to the first that is not intact."""
    while pos + _FRAGMENT_HEAD.size <= len(data):
        left = _BLOCK_SIZE - pos % _BLOCK_SIZE
        if left < _FRAGMENT_HEAD.size:
            pos += left
            continue
        crc, length, kind = _FRAGMENT_HEAD.unpack_from(data, pos)
        end = pos + _FRAGMENT_HEAD.size + length
        if kind not in (_FULL, _FIRST, _MIDDLE, _LAST) or end > min(pos + left, len(data)):
            return
        if crc != _compute_masked_crc(data[pos + _FRAGMENT_HEAD.size - 1 : end]):
            return
        yield _Fragment(pos, end, kind)
        pos = end


def _compute_masked_crc(content: bytes) -> int:
    crc = crc32c.crc32c(content)
    return ((crc >> 15 | crc << 17) + _CRC_MASK_DELTA) & 0xFFFFFFFF
