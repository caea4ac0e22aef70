"""Finding segment files: in a broker's log folder, in a partition folder, or a single file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from model.ids import LogPartition
from storage.segments.errors import NotSegments, SegmentError, UnfinishedCleaning
from storage.segments.segment_reader import RawBatch, SegmentFile, read_segments

TOPIC = "__consumer_offsets"
SEGMENT_SUFFIX = ".log"

_PARTITION_FOLDER = re.compile(rf"{TOPIC}-(\d{{1,5}})")
_NUMBERED = re.compile(r".*-(\d{1,5})")
_SEGMENT = re.compile(r"(\d{20})\.log")
_INDEX = re.compile(r"(\d{20})\.(?:index|timeindex)")
_UNFINISHED_SUFFIX = ".log.swap"


@dataclass(frozen=True, slots=True)
class SegmentFolder:
    """The segments found at a path: by partition, and in offset order within each.

    ``notes`` are one-line warnings about what was found.
    """

    path: Path
    segments: Mapping[LogPartition, tuple[SegmentFile, ...]]
    notes: tuple[str, ...] = field(default=())

    @property
    def partitions(self) -> tuple[LogPartition, ...]:
        """The partitions that were found, in ascending order."""
        return tuple(self.segments)

    @property
    def partition_count(self) -> int:
        """The least possible partition count of the topic: one more than the highest found."""
        return max(self.segments) + 1

    def read(self, partition: LogPartition, *, verify_crc: bool = True) -> Iterator[RawBatch]:
        """Iterate over the batches of a partition in offset order; see ``read_segments``."""
        return read_segments(self.segments[partition], verify_crc=verify_crc)


def compute_segment_name(base_offset: int) -> str:
    """The file name of the segment with this base offset."""
    return f"{base_offset:020}{SEGMENT_SUFFIX}"


def open_segments(path: Path) -> SegmentFolder:
    """Find the segments of ``__consumer_offsets`` at a path, without reading them.

    The path is a folder with ``__consumer_offsets-N`` folders (other entries are ignored), the
    folder of one partition, or one segment file. Raises ``NotSegments`` if there are none, and
    ``SegmentError`` if some are missing or cannot be read.
    """
    try:
        if path.is_file():
            return _open_file(path)
        if not path.is_dir():
            raise NotSegments(f"{path} does not exist")
        return _open_folder(path)
    except OSError as error:
        raise SegmentError(f"{path} cannot be read: {error.strerror}") from error


def _open_file(path: Path) -> SegmentFolder:
    match = _SEGMENT.fullmatch(path.name)
    partition, notes = _compute_partition(path.absolute().parent, path)
    file = SegmentFile(path, partition, int(match[1]) if match else 0)
    return SegmentFolder(path, {partition: (file,)}, notes)


def _open_folder(path: Path) -> SegmentFolder:
    found = {
        LogPartition(int(match[1])): entry
        for entry in path.iterdir()
        if (match := _PARTITION_FOLDER.fullmatch(entry.name)) and entry.is_dir()
    }
    notes: tuple[str, ...] = ()
    if not found:
        if not any(_SEGMENT.fullmatch(entry.name) for entry in path.iterdir()):
            raise NotSegments(
                f"{path} holds no segments: it has neither {TOPIC}-N folders nor "
                f"files such as {compute_segment_name(0)}"
            )
        partition, notes = _compute_partition(path.absolute(), path)
        found = {partition: path}
    segments = {
        partition: _find_segments(partition, found[partition]) for partition in sorted(found)
    }
    notes += tuple(
        f"{files[0].path} begins at offset {files[0].base_offset}: segments before it are missing, "
        "unless Kafka has deleted them"
        for files in segments.values()
        if files[0].base_offset
    )
    return SegmentFolder(path, segments, notes)


def _compute_partition(folder: Path, path: Path) -> tuple[LogPartition, tuple[str, ...]]:
    match = _NUMBERED.fullmatch(folder.name)
    if match:
        return LogPartition(int(match[1])), ()
    note = f"{path} does not name its partition, as {TOPIC}-N would: partition 0 is assumed"
    return LogPartition(0), (note,)


def _find_segments(partition: LogPartition, folder: Path) -> tuple[SegmentFile, ...]:
    names = sorted(entry.name for entry in folder.iterdir())
    files = {}
    for name in names:
        match = _SEGMENT.fullmatch(name)
        if match:
            files[match[1]] = SegmentFile(folder / name, partition, int(match[1]))
        elif name.endswith(SEGMENT_SUFFIX):
            raise NotSegments(f"{folder / name} is not a segment: its name is not 20 digits")
        elif name.endswith(_UNFINISHED_SUFFIX):
            raise UnfinishedCleaning(
                f"{folder / name}: the broker was cleaning this log when it stopped; start it once "
                "more, or copy the folder again"
            )
    if not files:
        raise NotSegments(f"{folder} holds no segment files")
    for name in names:
        match = _INDEX.fullmatch(name)
        if match and match[1] not in files:
            raise UnfinishedCleaning(
                f"{folder / match[1]}{SEGMENT_SUFFIX} is missing, but its index exists"
            )
    return tuple(files.values())
