"""Kafka's segment files as a log, read whole or in slices."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from model.ids import LogPartition
from pipeline.decoding.blocks import find_first_offset
from pipeline.decoding.bounds import ALL, Bounds
from pipeline.decoding.byte_source import BytesOfFile, open_file
from pipeline.decoding.scan import Damage, Piece, ScanPosition, scan_batches
from pipeline.source.errors import LogReplaced, NotALog, SourceError
from pipeline.source.logs.group_log import SegmentSlice, Slice, count_slices, pack_slices
from pipeline.source.logs.identity import find_identity
from pipeline.source.logs.left_alone import note_left_alone
from pipeline.source.logs.marks import Mark, find_difference, find_last_mark, find_overlaps
from pipeline.source.logs.places import Edge, Places, check_edges, read_edge
from storage.codec.batches import HEADER_SIZE
from storage.columnar.batch_columns import BatchColumns
from storage.segments.errors import NotSegments, SegmentError, UnfinishedCleaning
from storage.segments.folder import SegmentFolder, open_segments
from storage.segments.segment_reader import SegmentFile

SLICE_BYTES = 32 << 20
"""Most bytes that a task reads: a quarter of a segment of Kafka's default size."""

SLICES_OF_A_FILE = 8
"""More slices would read the file more often than they speed it up."""

_LOOKS = 11
_PAUSE_S = 0.1
"""The pause between attempts while a broker renames files, which takes it a moment each."""

_BEYOND = 1 << 63
"""Exceeds every offset."""


class SegmentLog:
    """See ``GroupLog``. Files may grow, be compacted or be replaced, and new ones may appear.

    ``pause`` sleeps for some seconds, while a broker's cleaner is at work.
    """

    def __init__(self, path: Path, pause: Callable[[float], None] = time.sleep) -> None:
        self._path = path
        self._pause = pause
        self._folder = _open_folder(path, pause)
        self._places = Places()
        self._ends: dict[int, tuple[int, Mark]] = {}
        """The end of each partition when it last grew, and its mark."""
        self._confirmed: dict[int, list[_Confirmed]] = {}

    @property
    def partitions(self) -> tuple[int, ...]:
        """See ``GroupLog``."""
        return self._folder.partitions

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes worth reporting that are not errors."""
        return self._folder.notes + note_left_alone(self._path)

    @property
    def identity(self) -> str | None:
        """See ``GroupLog``: the topic id or the cluster id, if the folder has one."""
        folders = [files[0].path.absolute().parent for files in self._folder.segments.values()]
        return find_identity(folders)

    def beginning(self, partition: int) -> int:
        """See ``GroupLog``."""
        return self._files(partition)[0].base_offset

    def end(self, partition: int) -> int:
        """See ``GroupLog``; does not read the known part of an unchanged file again."""
        file = self._files(partition)[-1]
        last = None
        for piece, begin in self._walk(file, _BEYOND):
            if not isinstance(piece, Damage):
                last = piece, begin
        end = max(self._places.find(file.path, _BEYOND).next_offset, file.base_offset)
        found = None if last is None else find_last_mark(last[0], ALL)
        if last is not None and found is not None:
            self._confirm(partition, file, found[0], last[0], last[1], found[1])
            self._ends[partition] = end, found[0]
        return end

    def find_time(self, partition: int, wall_ms: int) -> int | None:
        """See ``GroupLog``; reads all batch headers before the result."""
        pieces = (piece for file in self._files(partition) for piece, _ in self._walk(file, 0))
        return find_first_offset(pieces, Bounds(start_ms=wall_ms))

    def find_next(self, partition: int, start: int, end: int) -> int:
        """See ``GroupLog``; reads one block, or more if it is empty."""
        files = self._files(partition)
        first = max(0, bisect_right([file.base_offset for file in files], start) - 1)
        for file in files[first:]:
            if file.base_offset >= end:
                break
            for piece, _ in self._walk(file, start):
                if isinstance(piece, Damage):
                    return start
                at = int(np.searchsorted(piece.last_offsets, start))
                if at < len(piece.last_offsets):
                    return min(end, max(start, int(piece.base_offsets[at])))
        return end

    def find_mark(self, partition: int, start: int, end: int) -> Mark | None:
        """See ``GroupLog``; reads the file before ``end``."""
        known = self._ends.get(partition)
        if known is not None and known[0] == end and known[1].offset >= start:
            return known[1]
        for file in reversed(self._files(partition)):
            if file.base_offset >= end:
                continue
            found = self._find_mark_in(partition, file, Bounds(start, end))
            if found is not None or file.base_offset <= start:
                return found
        return None

    def _find_mark_in(self, partition: int, file: SegmentFile, bounds: Bounds) -> Mark | None:
        assert bounds.end_offset is not None
        # Search near the end first, where the record usually is.
        for offset in dict.fromkeys((bounds.end_offset - 1, bounds.start_offset)):
            found = None
            for piece, begin in self._walk(file, offset):
                if isinstance(piece, Damage):
                    continue
                if piece.base_offsets[0] >= bounds.end_offset:
                    break
                in_piece = find_last_mark(piece, bounds)
                found = found if in_piece is None else (*in_piece, piece, begin)
            if found is not None:
                mark, index, piece, begin = found
                self._confirm(partition, file, mark, piece, begin, index)
                return mark
        return None

    def find_change(self, partition: int, mark: Mark) -> str | None:
        """See ``GroupLog``; reads only a header if the file is unchanged."""
        if any(known.holds(mark) for known in self._confirmed.get(partition, ())):
            return None
        files = self._files(partition)
        bases = [file.base_offset for file in files]
        seen = None
        first = max(0, bisect_right(bases, mark.base_offset) - 1)
        for file in files[first : bisect_right(bases, mark.last_offset)]:
            for piece, begin in self._walk(file, mark.base_offset):
                if isinstance(piece, Damage):
                    continue
                for index in find_overlaps(piece, mark):
                    difference = find_difference(piece, index, mark)
                    if difference is not None:
                        return f"{file.path}, byte {begin + int(piece.starts[index])}: {difference}"
                    if piece.last_offsets[index] == mark.last_offset:
                        seen = file, mark, piece, begin, index
                if piece.base_offsets[-1] > mark.last_offset:
                    break
        if seen is not None:
            self._confirm(partition, *seen)
        return None

    def _confirm(
        self,
        partition: int,
        file: SegmentFile,
        mark: Mark,
        piece: BatchColumns,
        begin: int,
        index: int,
    ) -> None:
        """Remember the position of the mark's batch, for the next check."""
        start = int(piece.starts[index])
        head = piece.data[start : start + HEADER_SIZE]
        found = _Confirmed(mark, file.path, Edge(begin + start + len(head), head))
        known = self._confirmed.setdefault(partition, [])
        # Spark asks for the marks of the start and of the end of a micro-batch.
        known[:] = [*[one for one in known if one.mark != mark], found][-2:]

    def plan(
        self, wanted: Sequence[tuple[int, Bounds]], min_slices: int | None
    ) -> list[list[Slice]]:
        """See ``GroupLog``."""
        whole = [part for partition, bounds in wanted for part in self._slice(partition, bounds)]
        total = sum(part.weight for part in whole)
        slices: list[SegmentSlice] = []
        for part in whole:
            # Each task scans the file from its start, because damage decides where batches begin.
            count = count_slices(part.weight, total, SLICE_BYTES, min_slices)
            slices.extend(_split(part, min(count, SLICES_OF_A_FILE)))
        if min_slices is not None:
            return [[part] for part in slices]
        return pack_slices(slices, SLICE_BYTES)

    def refresh(self) -> None:
        """See ``GroupLog``."""
        self._folder = _open_folder(self._path, self._pause)
        there = self._folder.segments.values()
        self._places.keep(file.path for files in there for file in files)

    def close(self) -> None:
        """See ``GroupLog``."""

    def _files(self, partition: int) -> tuple[SegmentFile, ...]:
        return self._folder.segments[LogPartition(partition)]

    def _slice(self, partition: int, bounds: Bounds) -> Iterator[SegmentSlice]:
        files = self._files(partition)
        ends = [file.base_offset for file in files[1:]]
        for file, end in zip(files, [*ends, None], strict=True):
            if bounds.intersect(Bounds(file.base_offset, end)).is_empty():
                continue
            with _opening(file.path) as source:
                self._places.check(file.path, source)
                start = self._places.find(file.path, bounds.start_offset)
                edges = (read_edge(source, start.position), read_edge(source, source.size))
                if start.position < source.size:
                    path = str(file.path.absolute())
                    yield SegmentSlice(
                        partition, path, start, start.position, source.size, bounds, edges
                    )

    def _walk(self, file: SegmentFile, offset: int) -> Iterator[tuple[Piece, int]]:
        """The pieces of a file, with the byte at which each begins.

        Starts at the last known position before which no record from ``offset`` can be.
        """
        with _opening(file.path) as source:
            self._places.check(file.path, source)
            position = self._places.find(file.path, offset)
            for piece in scan_batches(source, start=position):
                begin = position.position
                position = _compute_after(piece, position)
                if not isinstance(piece, Damage):
                    batch_at = begin + int(piece.starts[-1])
                    self._places.add(file.path, source, batch_at, position)
                yield piece, begin


@dataclass(frozen=True, slots=True)
class _Confirmed:
    """A mark, and the header of the batch in which it was found."""

    mark: Mark
    path: Path
    head: Edge

    def holds(self, mark: Mark) -> bool:
        """Whether it is this mark, and its batch is still in its position."""
        if self.mark != mark:
            return False
        try:
            with open_file(self.path) as source:
                return self.head.is_in(source)
        except OSError:
            return False


def read_segment_slice(part: SegmentSlice) -> Iterator[Piece]:
    """The pieces of a slice. Raise ``SourceError`` if the file cannot be read.

    Raise ``LogReplaced``, a ``SourceError``, if it is no longer the planned file.
    """
    with _opening(Path(part.file)) as source:
        check_edges(source, part.edges, part.file)
        for piece in scan_batches(source, part.begin, part.end, start=part.start):
            if _is_beyond(piece, part.bounds.end_offset):
                break
            yield _name_file(piece, part.file)
        # The file may have been overwritten in place while it was read.
        check_edges(source, part.edges, part.file)


@contextmanager
def _opening(path: Path) -> Iterator[BytesOfFile]:
    try:
        with open_file(path) as source:
            yield source
    except FileNotFoundError as error:
        # It existed when the folder was read: the cleaner has merged it into the previous one.
        raise LogReplaced(
            f"{path}: the file no longer exists, because a broker has merged or deleted it; "
            "read it again"
        ) from error
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from error


def _compute_after(piece: Piece, before: ScanPosition) -> ScanPosition:
    if isinstance(piece, Damage):
        return ScanPosition(piece.position + piece.size, before.next_offset)
    size = int(np.sum(piece.sizes))
    return ScanPosition(before.position + size, int(piece.last_offsets[-1]) + 1)


def _is_beyond(piece: Piece, end_offset: int | None) -> bool:
    if end_offset is None or isinstance(piece, Damage):
        return False
    return bool(piece.base_offsets[0] >= end_offset)


def _name_file(piece: Piece, file: str) -> Piece:
    return replace(piece, detail=f"{file}, {piece.detail}") if isinstance(piece, Damage) else piece


def _split(part: SegmentSlice, count: int) -> Iterator[SegmentSlice]:
    if count == 1:
        yield part
        return
    positions = [part.begin + part.weight * number // count for number in range(count + 1)]
    with _opening(Path(part.file)) as source:
        check_edges(source, part.edges, part.file)
        edges = [read_edge(source, position) for position in positions]
    for index, (begin, end) in enumerate(pairwise(positions)):
        known = tuple(dict.fromkeys((edges[0], *edges[index : index + 2])))
        yield replace(part, begin=begin, end=end, edges=known)


def _open_folder(path: Path, pause: Callable[[float], None]) -> SegmentFolder:
    try:
        for _ in range(_LOOKS - 1):
            try:
                return open_segments(path)
            except UnfinishedCleaning:
                pause(_PAUSE_S)
        return open_segments(path)
    except NotSegments as error:
        raise NotALog(str(error)) from error
    except SegmentError as error:
        raise SourceError(str(error)) from error
