"""The log of one partition: segment files, producer state snapshots, retention.

The partition's folder has ``<base offset>.log`` files and, for the newest segments, a
``<base offset>.producers`` file with the state of idempotent producers at that offset, so that
opening needs to read the newest segment only. Opening checks every CRC of that segment and
truncates a partial batch at its end; there is no other recovery state.

Compaction replaces several files by one. From the moment it counts until the old ones are removed,
it is named ``<base offset>-<next offset>.swap``, so that opening can finish the replacement.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from coordinator.runtime.loop.slices import Steps
from gateway.topics.log.batch_lookup import find_record
from gateway.topics.log.idempotent_producers import ProducerStates, decode_producers
from gateway.topics.log.open_files import OpenFiles, write_file
from gateway.topics.log.produced import ProducedBatch
from gateway.topics.log.segment import SUFFIX, Segment
from gateway.topics.settings import TopicSettings
from gateway.topics.topic_catalogue import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NO_OFFSET,
    NO_TIMESTAMP,
    OffsetResult,
    TopicDataError,
)
from model.errors import ErrorCode
from storage.codec.batches import HEADER_SIZE, BatchHeader

PRODUCERS_SUFFIX = ".producers"
SWAP_SUFFIX = ".swap"
DRAFT_SUFFIX = ".draft"

LEADER_EPOCH = 0
"""The leader of a partition stored here never changes."""

_LAST_OFFSET = (1 << 63) - 1
_log = logging.getLogger(__name__)


class Appended(NamedTuple):
    """The position of an appended batch; ``new_bytes`` is 0 for a duplicate."""

    base_offset: int
    new_bytes: int
    duplicate_timestamp: int | None = None


class PartitionLog:
    """An open partition; neither ``start_offset`` nor ``end_offset`` ever goes back.

    ``compacted_bytes`` is the size of its complete segments after the last compaction.
    """

    __slots__ = (
        "_files",
        "_folder",
        "_producers",
        "_settings",
        "compacted_bytes",
        "end_offset",
        "segments",
    )

    def __init__(
        self, folder: Path, files: OpenFiles, settings: TopicSettings, end_offset_floor: int
    ) -> None:
        """The partition in ``folder``, which need not exist yet; call ``recover`` next.

        Offsets below ``end_offset_floor`` were assigned before, so if the files end below it, the
        next record gets that offset. Raises ``OSError``.
        """
        self._folder = folder
        self._files = files
        self._settings = settings
        self.segments = _find_segments(folder, files)
        self._producers = ProducerStates(settings.gateway_topics_producers_per_partition)
        self.end_offset = end_offset_floor
        self.compacted_bytes = 0

    def recover(self) -> Steps[None]:
        """Load producer state and the newest segments, in steps; the log is open after the last.

        Raises ``OSError``. Only the code after the last yield changes anything on disk.
        """
        if not self.segments:
            return
        for segment in self.segments[self._find_producers() :]:
            while not segment.is_loaded:
                for header in self._load_some(segment):
                    self._producers.record(header, header.base_offset)
                yield
        newest = self.segments[-1]
        newest.truncate_file()
        self.end_offset = max(newest.next_offset, self.end_offset)

    @property
    def start_offset(self) -> int:
        """The log start offset."""
        return self.segments[0].base_offset if self.segments else self.end_offset

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def closed_bytes(self) -> int:
        """Bytes of the complete segments: all but the newest."""
        return sum(segment.size for segment in self.segments[:-1])

    def append(self, batch: ProducedBatch) -> Appended:
        """Append a batch unless it is a duplicate. Raises ``TopicDataError`` or ``OSError``."""
        duplicate = self._producers.find_duplicate(batch.header)
        if duplicate is not None:
            return Appended(duplicate.base_offset, 0, duplicate.max_timestamp)
        self._producers.check_next(batch.header)
        offset = self.end_offset
        if offset > _LAST_OFFSET - batch.header.count:
            raise TopicDataError(ErrorCode.KAFKA_STORAGE_ERROR, "The partition is out of offsets.")
        header = replace(
            batch.header, base_offset=offset, last_offset=offset + batch.header.last_offset
        )
        data = batch.at(offset)
        self._segment_for(len(data)).append(data, header)
        self.end_offset = header.last_offset + 1
        self._producers.record(header, offset)
        return Appended(offset, len(data))

    def load_in_steps(self, segment: Segment) -> Steps[None]:
        """Load a segment in steps, unless it is deleted meanwhile.

        Concurrent callers share the work. Raises ``OSError``.
        """
        while not segment.is_loaded and segment in self.segments:
            self._load_some(segment)
            yield

    def must_load(self, offset: int) -> bool:
        """Whether ``load_for_read`` of this offset has a segment to load."""
        return self._find_unread(offset) is not None

    def load_for_read(self, offset: int) -> Steps[None]:
        """Load the segments that ``read`` of this offset needs, in steps. Raises ``OSError``."""
        while (segment := self._find_unread(offset)) is not None:
            self._load_some(segment)
            yield

    def read(self, offset: int, max_bytes: int, at_least_one: bool) -> bytes:
        """Whole batches from ``offset`` on, of one segment; call ``load_for_read`` before.

        Raises ``TopicDataError`` if the offset is out of range, or ``OSError``.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise TopicDataError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {offset} is out of range {self.start_offset} to {self.end_offset}.",
            )
        if max_bytes < HEADER_SIZE and not at_least_one:
            return b""
        for segment in islice(self.segments, self._find_number(offset), None):
            assert segment.is_loaded, "a segment must be loaded before it is read"
            data = segment.read(offset, max_bytes, at_least_one)
            # A raised end offset or a damaged file leaves a gap: continue after it.
            if data or segment.next_offset > offset:
                return data
        return b""

    def find_offset(self, timestamp: int) -> Steps[OffsetResult]:
        """Look up the offset of a timestamp or special timestamp, in steps. Raises ``OSError``."""
        if timestamp == LATEST_TIMESTAMP:
            return OffsetResult(ErrorCode.NONE, self.end_offset, leader_epoch=LEADER_EPOCH)
        if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            return OffsetResult(ErrorCode.NONE, self.start_offset, leader_epoch=LEADER_EPOCH)
        if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
            return OffsetResult(ErrorCode.NONE)
        if timestamp == MAX_TIMESTAMP:
            offset, found = yield from self.find_max_timestamp()
        elif timestamp < 0:
            return OffsetResult(ErrorCode.UNSUPPORTED_VERSION)
        else:
            offset, found = yield from self.find_timestamp(timestamp)
        if offset == NO_OFFSET:
            return OffsetResult(ErrorCode.NONE)
        return OffsetResult(ErrorCode.NONE, offset, found, LEADER_EPOCH)

    def find_timestamp(self, timestamp: int) -> Steps[tuple[int, int]]:
        """The first (offset, timestamp) at or after ``timestamp``; (-1, -1) if there is none.

        Segments may be deleted or compacted between the steps; the search then continues in the
        segment that holds the offset reached. Records appended meanwhile are not searched.
        """
        offset, end_offset = self.start_offset, self.end_offset
        while offset < end_offset and self.segments:
            segment = self.segments[self._find_number(offset)]
            yield from self.load_in_steps(segment)
            if segment.max_timestamp >= timestamp:
                batches = segment.batches_with_timestamp(timestamp)
                while segment in self.segments and (located := next(batches, None)) is not None:
                    if located.header.last_offset >= offset:
                        found = yield from find_record(segment.read_batch(located), timestamp)
                        if found is not None:
                            return found
                        offset = located.header.last_offset + 1
                    yield
            if segment in self.segments:
                number = self.segments.index(segment) + 1
                offset = end_offset
                if number < len(self.segments):
                    offset = self.segments[number].base_offset
        return NO_OFFSET, NO_TIMESTAMP

    def find_max_timestamp(self) -> Steps[tuple[int, int]]:
        """The first (offset, timestamp) of the largest timestamp; (-1, -1) without records."""
        for segment in tuple(self.segments):
            yield from self.load_in_steps(segment)
        looked_for = NO_TIMESTAMP
        # The segment with it may be deleted during the search: then look for the new largest.
        while (largest := self._compute_max_timestamp()) not in (NO_TIMESTAMP, looked_for):
            looked_for = largest
            found = yield from self.find_timestamp(largest)
            if found != (NO_OFFSET, NO_TIMESTAMP):
                return found
        return NO_OFFSET, NO_TIMESTAMP

    def _compute_max_timestamp(self) -> int:
        return max((segment.max_timestamp for segment in self.segments), default=NO_TIMESTAMP)

    def apply_retention(self) -> Iterator[Segment]:
        """Delete the oldest segments beyond the retention size; yields each after deletion."""
        while (
            len(self.segments) > 1
            and self.size - self.segments[0].size >= self._settings.gateway_topics_retention_bytes
        ):
            yield self._drop_first()

    def drop_until(self, base_offset: int) -> Iterator[Segment]:
        """Delete the segment of this base offset and all before it; yields each after deletion."""
        while self.segments and self.segments[0].base_offset <= base_offset:
            if len(self.segments) == 1:
                if self.segments[0].base_offset == self.end_offset:
                    return
                # The file name of a new empty segment preserves the end offset.
                self._roll()
            yield self._drop_first()

    def make_segment(self, base_offset: int) -> Segment:
        """Create an empty segment that is not part of the partition yet."""
        return Segment(self._folder, base_offset, self._files)

    def replace_segments(self, group: Sequence[Segment], draft: Path, made: Segment) -> None:
        """Replace the adjacent segments of ``group`` by the file ``draft``, as ``made``.

        Discards the file if one of them was deleted meanwhile. Raises ``OSError``.
        """
        if not all(segment in self.segments for segment in group):
            draft.unlink(missing_ok=True)
            return
        first = self.segments.index(group[0])
        swap = made.path.with_name(f"{made.base_offset:020d}-{made.next_offset:020d}{SWAP_SUFFIX}")
        draft.rename(swap)
        for segment in group:
            self._producers_path(segment).unlink(missing_ok=True)
            segment.forget_file()
        swap.rename(made.path)
        self.segments[first : first + len(group)] = [made]

    def _segment_for(self, size: int) -> Segment:
        if not self.segments:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._roll()
        newest = self.segments[-1]
        is_full = newest.size + size > self._settings.gateway_topics_segment_bytes
        # A raised end offset leaves a gap, which a segment must not have.
        if newest.next_offset != self.end_offset or (newest.size and is_full):
            self._roll()
        return self.segments[-1]

    def _roll(self) -> None:
        """Start a new segment at the end offset."""
        segment = Segment(self._folder, self.end_offset, self._files)
        write_file(self._producers_path(segment), self._producers.encode())
        self._files.create(segment.path)
        self.segments.append(segment)
        for old in self.segments[:-2]:
            self._producers_path(old).unlink(missing_ok=True)

    def _drop_first(self) -> Segment:
        segment = self.segments.pop(0)
        self._producers_path(segment).unlink(missing_ok=True)
        segment.forget_file()
        return segment

    def _find_number(self, offset: int) -> int:
        """The index of the segment that holds an offset, or 0."""
        number = bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1
        return max(number, 0)

    def _find_unread(self, offset: int) -> Segment | None:
        """The first segment that ``read`` would need and that is not loaded."""
        if not self.segments or not self.start_offset <= offset <= self.end_offset:
            return None
        for segment in islice(self.segments, self._find_number(offset), None):
            if not segment.is_loaded:
                return segment
            if segment.next_offset > offset:
                return None
        return None

    def _load_some(self, segment: Segment) -> Sequence[BatchHeader]:
        size = segment.size
        headers = segment.load_some()
        if segment.size < size:
            _log.warning(
                "%s: only the first %d of %d bytes hold whole batches",
                segment.path,
                segment.size,
                size,
            )
        return headers

    def _producers_path(self, segment: Segment) -> Path:
        return segment.path.with_suffix(PRODUCERS_SUFFIX)

    def _find_producers(self) -> int:
        """Load the newest valid producer snapshot; return the index of its segment, or 0."""
        limit = self._settings.gateway_topics_producers_per_partition
        for number in range(len(self.segments) - 1, -1, -1):
            try:
                data = self._producers_path(self.segments[number]).read_bytes()
            except FileNotFoundError:
                continue
            states = decode_producers(data, limit)
            if states is not None:
                self._producers = states
                return number
        return 0


def _find_segments(folder: Path, files: OpenFiles) -> list[Segment]:
    """The segments of a partition in offset order, not loaded."""
    try:
        paths = list(folder.iterdir())
    except FileNotFoundError:
        return []
    if any(path.suffix in (SWAP_SUFFIX, DRAFT_SUFFIX) for path in paths):
        _finish_swaps(folder)
        paths = list(folder.iterdir())
    found = [
        Segment(folder, int(path.stem), files, path.stat().st_size)
        for path in paths
        if path.suffix == SUFFIX and path.stem.isdecimal()
    ]
    return sorted(found, key=lambda segment: segment.base_offset)


def _finish_swaps(folder: Path) -> None:
    """Finish replacements that compaction had begun when the process ended; delete drafts."""
    for draft in folder.glob(f"*{DRAFT_SUFFIX}"):
        draft.unlink()
    for swap in folder.glob(f"*{SWAP_SUFFIX}"):
        base_offset, next_offset = map(int, swap.stem.split("-"))
        for path in folder.glob(f"*{SUFFIX}"):
            if path.stem.isdecimal() and base_offset <= int(path.stem) < next_offset:
                path.unlink()
        swap.rename(folder / f"{base_offset:020d}{SUFFIX}")
