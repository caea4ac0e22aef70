"""The end offsets that partitions had, so that none goes back where records are lost.

Records are written but not fsynced: the end of a process does not touch them, a power failure
may take the last ones. Were their offsets given away again, a consumer that had read the lost
records would take the new ones for old. So the end offsets alone, 28 bytes for a partition that
was appended to, are written to one file and fsynced, at most once an interval and by a worker
thread. That is far cheaper than fsyncing every segment, and what a power failure within an
interval leaves open is closed by the committed offsets, which are durable: the caller lifts to
them at start-up.

The file is a list of frames (length, CRC, entries); a later entry adds to an earlier one, the
larger offset counts. A frame that is not whole ends it.
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
"""A committed offset above it is a client's mistake; the partition must stay usable."""

_FRAME = struct.Struct(">II")
_ENTRY = struct.Struct(">16siq")
_REWRITE_ABOVE_BYTES = 1 << 16
_REWRITE_FACTOR = 4
_log = logging.getLogger(__name__)


class Frame(NamedTuple):
    """Bytes to write, added to the file or, where it ``replaces`` it, in its place."""

    data: bytes
    replaces: bool


class EndOffsets:
    """End offsets by partition. Raise them with ``lift``, and give its frames to ``write_frame``.

    ``write_frame`` alone may run in another thread, one frame at a time and in their order.
    """

    def __init__(self, path: Path) -> None:
        """Read what is there. Raises ``OSError``."""
        self._path = path
        self._file_size = 0
        self._is_damaged = False
        self._offsets: dict[PartitionKey, int] = {}
        self._read()

    def get(self, key: PartitionKey) -> int:
        """The end offset that the partition has had at least."""
        return self._offsets.get(key, 0)

    def lift(self, offsets: Mapping[PartitionKey, int]) -> Frame | None:
        """Raise what is lower; the frame that says so, or ``None`` where nothing was."""
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
        """Drop partitions of deleted topics; the file loses them when it is written anew."""
        for key in keys:
            self._offsets.pop(key, None)

    def partitions(self) -> list[PartitionKey]:
        """The partitions that something is known of."""
        return list(self._offsets)

    def mark_damaged(self) -> None:
        """A frame could not be written: what the file holds is unknown, the next replaces it."""
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
            _log.warning("%s: the last %d bytes are not whole", self._path, len(data) - pos)
            self._is_damaged = True


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
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
    """The floors, by name and number, of those partitions that exist."""
    wanted: dict[PartitionKey, int] = {}
    for (name, partition), floor in floors.items():
        topic = image.by_name.get(name)
        if topic is not None and partition < topic.partitions and 0 < floor <= MAX_LIFT:
            wanted[PartitionKey(topic.topic_id, partition)] = floor
    return wanted
