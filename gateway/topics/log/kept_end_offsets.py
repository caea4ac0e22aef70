"""Durable end offsets of partitions, so that none goes back when records are lost.

Records are written but not fsynced: they survive the process, but a power failure may take the last
ones. If their offsets were assigned again, a consumer that had read the lost records would skip the
new ones. So a worker thread writes and fsyncs the end offsets alone, 28 bytes per appended
partition, to one file, at most once an interval. That is far cheaper than fsyncing every segment.
The committed offsets, which are durable, cover a power failure within an interval: the caller lifts
the end offsets to them at start-up.

The file is a list of frames (length, CRC, entries). A partition may have several entries; the
largest offset counts. A partial frame ends the file.
"""

from __future__ import annotations

import logging
import os
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from gateway.topics.topic_catalogue import PartitionKey
from model.ids import TopicId, TopicName
from model.topics import TopicImage

MAX_LIFT: Final = 1 << 62
"""A committed offset above this is a client's mistake; the partition must stay usable."""

_FRAME = struct.Struct(">II")
_ENTRY = struct.Struct(">16siq")
_REWRITE_ABOVE_BYTES = 1 << 16
_REWRITE_FACTOR = 4
_log = logging.getLogger(__name__)


class Frame(NamedTuple):
    """Bytes to append to the file, or to replace it with if ``replaces``."""

    data: bytes
    replaces: bool


class EndOffsets:
    """The end offsets by partition; ``lift`` raises them, ``write_frame`` makes that durable.

    Only ``write_frame`` may run in another thread, one frame at a time and in order.
    """

    def __init__(self, path: Path) -> None:
        """Read the file at ``path``, if it exists. Raises ``OSError``."""
        self._path = path
        self._file_size = 0
        self._is_damaged = False
        self._offsets: dict[PartitionKey, int] = {}
        self._read()

    def get(self, key: PartitionKey) -> int:
        """The highest known end offset of the partition, or 0."""
        return self._offsets.get(key, 0)

    def lift(self, offsets: Mapping[PartitionKey, int]) -> Frame | None:
        """Raise end offsets that are lower; return the frame to write, or ``None`` if none was."""
        raised = {key: end for key, end in offsets.items() if end > self.get(key)}
        if not raised and not self._is_damaged:
            return None
        self._offsets.update(raised)
        live = _FRAME.size + len(self._offsets) * _ENTRY.size
        replaces = self._is_damaged or self._file_size > max(
            _REWRITE_ABOVE_BYTES, _REWRITE_FACTOR * live
        )
        data = _encode_frame(self._offsets if replaces else raised)
        self._file_size = len(data) + (0 if replaces else self._file_size)
        self._is_damaged = False
        return Frame(data, replaces)

    def forget(self, keys: Iterable[PartitionKey]) -> None:
        """Drop partitions of deleted topics; the file drops them when it is next replaced."""
        for key in keys:
            self._offsets.pop(key, None)

    def partitions(self) -> list[PartitionKey]:
        """The partitions with a known end offset."""
        return list(self._offsets)

    def mark_damaged(self) -> None:
        """Note a failed write: the file's content is unknown, so the next frame replaces it."""
        self._is_damaged = True

    def write_frame(self, frame: Frame) -> None:
        """Make a frame durable. Raises ``OSError``."""
        path = self._path.with_name(self._path.name + ".tmp") if frame.replaces else self._path
        with path.open("wb" if frame.replaces else "ab") as file:
            file.write(frame.data)
            file.flush()
            os.fsync(file.fileno())
        if frame.replaces:
            path.replace(self._path)
        sync_folder(self._path.parent)

    def _read(self) -> None:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        pos = 0
        while len(data) - pos >= _FRAME.size:
            length, crc = _FRAME.unpack_from(data, pos)
            payload = data[pos + _FRAME.size : pos + _FRAME.size + length]
            if len(payload) < length or length % _ENTRY.size or zlib.crc32(payload) != crc:
                break
            for topic_id, partition, end in _ENTRY.iter_unpack(payload):
                key = PartitionKey(TopicId(topic_id), partition)
                self._offsets[key] = max(end, self.get(key))
            pos += _FRAME.size + length
        self._file_size = pos
        if pos < len(data):
            _log.warning("%s: the last %d bytes are a partial frame", self._path, len(data) - pos)
            self._is_damaged = True


def sync_folder(folder: Path) -> None:
    """Fsync a folder, which makes the names in it durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _encode_frame(offsets: Mapping[PartitionKey, int]) -> bytes:
    payload = b"".join(
        _ENTRY.pack(topic_id, partition, end) for (topic_id, partition), end in offsets.items()
    )
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def compute_lifts(
    image: TopicImage, floors: Mapping[tuple[TopicName, int], int]
) -> dict[PartitionKey, int]:
    """The floors, given by topic name and partition, of the partitions that exist."""
    wanted: dict[PartitionKey, int] = {}
    for (name, partition), floor in floors.items():
        topic = image.by_name.get(name)
        if topic is not None and partition < topic.partitions and 0 < floor <= MAX_LIFT:
            wanted[PartitionKey(topic.topic_id, partition)] = floor
    return wanted
