"""Segments of Kafka as a log: whole files, or parts of large ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from model.ids import LogPartition
from pipeline.decoding.blocks import find_first_offset
from pipeline.decoding.bounds import Bounds
from pipeline.decoding.byte_source import open_file
from pipeline.decoding.scan import Damage, Piece, ScanPosition, scan_batches
from pipeline.source.errors import NotALog, SourceError
from pipeline.source.group_log import SegmentSlice, Slice, pack_slices
from pipeline.source.left_alone import note_left_alone
from storage.segments.errors import NotSegments, SegmentError
from storage.segments.folder import SegmentFolder, open_segments
from storage.segments.reader import SegmentFile

SLICE_BYTES = 32 << 20
"""What one task reads at most: a segment of Kafka's default size is four of them."""


class SegmentLog:
    """See ``GroupLog``. The files may grow, and more may come, while this lives."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = _open_folder(path)
        self._passed: dict[Path, list[ScanPosition]] = {}

    @property
    def partitions(self) -> tuple[int, ...]:
        """See ``GroupLog``."""
        return self._folder.partitions

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines about what was found and is worth knowing, but no error."""
        return self._folder.notes + note_left_alone(self._path)

    def beginning(self, partition: int) -> int:
        """See ``GroupLog``."""
        return self._files(partition)[0].base_offset

    def end(self, partition: int) -> int:
        """See ``GroupLog``; what a file was read up to is not read again."""
        file = self._files(partition)[-1]
        passed = self._passed.setdefault(file.path, [ScanPosition(0, 0)])
        for piece, position in _scan_from(file.path, passed[-1]):
            if not isinstance(piece, Damage):
                passed.append(position)
        return max(passed[-1].next_offset, file.base_offset)

    def find_time(self, partition: int, wall_ms: int) -> int | None:
        """See ``GroupLog``; reads the headers of all batches up to there."""
        files = self._files(partition)
        pieces = (piece for file in files for piece, _ in _scan_from(file.path, ScanPosition(0, 0)))
        return find_first_offset(pieces, Bounds(start_ms=wall_ms))

    def plan(
        self, wanted: Sequence[tuple[int, Bounds]], min_slices: int | None
    ) -> list[list[Slice]]:
        """See ``GroupLog``."""
        whole = [part for partition, bounds in wanted for part in self._slice(partition, bounds)]
        total = sum(part.weight for part in whole)
        most = SLICE_BYTES if min_slices is None else min(SLICE_BYTES, total // min_slices + 1)
        slices: list[Slice] = [piece for part in whole for piece in _split(part, most)]
        if min_slices is not None:
            return [[part] for part in slices]
        return pack_slices(slices, most)

    def refresh(self) -> None:
        """See ``GroupLog``."""
        self._folder = _open_folder(self._path)

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
            try:
                size = file.path.stat().st_size
            except OSError as error:
                raise SourceError(f"{file.path} cannot be read: {error.strerror}") from error
            start = self._find_start(file, bounds.start_offset)
            if start.position < size:
                path = str(file.path.absolute())
                yield SegmentSlice(partition, path, start, start.position, size, bounds)

    def _find_start(self, file: SegmentFile, offset: int) -> ScanPosition:
        """The last place known before which no record from an offset on can be."""
        passed = self._passed.get(file.path, [ScanPosition(0, 0)])
        return [known for known in passed if known.next_offset <= offset][-1]


def read_segment_slice(part: SegmentSlice) -> Iterator[Piece]:
    """The pieces of a slice; raises ``SourceError`` where the file cannot be read."""
    try:
        with open_file(Path(part.file)) as source:
            for piece in scan_batches(source, part.begin, part.end, start=part.start):
                if _is_beyond(piece, part.bounds.end_offset):
                    return
                yield _name_file(piece, part.file)
    except OSError as error:
        raise SourceError(f"{part.file} cannot be read: {error.strerror}") from error


def _scan_from(path: Path, start: ScanPosition) -> Iterator[tuple[Piece, ScanPosition]]:
    try:
        with open_file(path) as source:
            position = start
            for piece in scan_batches(source, start=start):
                position = _compute_after(piece, position)
                yield piece, position
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


def _split(part: SegmentSlice, most: int) -> Iterator[SegmentSlice]:
    count = -(-part.weight // most)
    edges = [part.begin + part.weight * number // count for number in range(count + 1)]
    for begin, end in pairwise(edges):
        yield replace(part, begin=begin, end=end)


def _open_folder(path: Path) -> SegmentFolder:
    try:
        return open_segments(path)
    except NotSegments as error:
        raise NotALog(str(error)) from error
    except SegmentError as error:
        raise SourceError(str(error)) from error
