"""Atomic writing of segment files: complete and durable under their names, or absent."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from model.ids import LogPartition
from storage.folder.unfinished import UNFINISHED_PREFIX, make_folder
from storage.folder.watermark import sync_folder
from storage.log_store import read_batch_range
from storage.segments.errors import SegmentError, TargetInUse
from storage.segments.folder import TOPIC, compute_segment_name

SEGMENT_BYTES = 100 << 20
"""Kafka's default of ``offsets.topic.segment.bytes``."""

_MAX_OFFSET_SPAN = (1 << 31) - 1
"""Kafka's indexes store offsets relative to the segment's base offset, in 31 bits."""

_BUFFER_BYTES = 1 << 20


class SegmentFolderWriter:
    """Writes partitions, one after another, as ``__consumer_offsets-N`` folders."""

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes

    def write_partition(
        self,
        partition: LogPartition,
        batches: Iterable[bytes],
        *,
        start_offset: int | None = None,
    ) -> tuple[Path, ...]:
        """Write batches, given in offset order, and return the files, which are durable.

        Each file is named by the base offset of its first batch; the first file by
        ``start_offset`` if given, which Kafka then takes as the log start offset. Without batches,
        one empty file is written. Raises ``ValueError`` for a batch out of offset order.
        """
        folder = self._folder / f"{TOPIC}-{partition}"
        folder.mkdir()
        files = []
        pending = _Segments(folder, self._segment_bytes, start_offset)
        with _write_errors(folder):
            try:
                for batch in batches:
                    pending.append(batch)
                files = pending.finish()
            finally:
                pending.close()
            sync_folder(folder)
        return tuple(files)

    def write_file(self, name: str, content: bytes) -> None:
        """Write another file beside the partition folders."""
        path = self._folder / name
        with _write_errors(path), path.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def create_segments(
    target: Path, *, segment_bytes: int = SEGMENT_BYTES
) -> Iterator[SegmentFolderWriter]:
    """Create a folder of segments that appears at ``target`` when the block ends without error.

    Until then the files are in a temporary folder beside it, which is removed on error. Raises
    ``TargetInUse`` if the target exists and is not empty, and ``SegmentError`` on I/O errors.
    """
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise TargetInUse(f"{target} already exists and is not empty: use another folder")
    with ExitStack() as folders:
        with _write_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            unfinished = folders.enter_context(make_folder(target.parent, UNFINISHED_PREFIX))
        yield SegmentFolderWriter(unfinished, segment_bytes)
        with _write_errors(target):
            unfinished.chmod(0o755)
            sync_folder(unfinished)
            unfinished.rename(target)
            sync_folder(target.parent)


class _Segments:
    """The segment files of one partition; the last one is open for appending."""

    def __init__(self, folder: Path, segment_bytes: int, start_offset: int | None) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._start_offset = start_offset
        self._next_offset = start_offset or 0
        self._files: list[Path] = []
        self._handle = -1
        self._base_offset = 0
        self._size = 0
        self._buffer = bytearray()

    def append(self, batch: bytes) -> None:
        base_offset, count = read_batch_range(batch)
        if base_offset < self._next_offset:
            raise ValueError(
                f"batch at offset {base_offset} cannot follow offset {self._next_offset - 1}"
            )
        self._next_offset = base_offset + count
        if self._handle < 0 or self._is_full(len(batch)):
            self._roll(base_offset)
        self._buffer += batch
        self._size += len(batch)
        if len(self._buffer) >= _BUFFER_BYTES:
            self._flush()

    def finish(self) -> list[Path]:
        if self._handle < 0:
            self._roll(0)
        self._end_file()
        return self._files

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _is_full(self, size: int) -> bool:
        span = self._next_offset - 1 - self._base_offset
        return span > _MAX_OFFSET_SPAN or (
            self._size > 0 and self._size + size > self._segment_bytes
        )

    def _roll(self, base_offset: int) -> None:
        if self._handle >= 0:
            self._end_file()
        elif self._start_offset is not None:
            base_offset = self._start_offset
        path = self._folder / compute_segment_name(base_offset)
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        self._files.append(path)
        self._base_offset = base_offset
        self._size = 0

    def _end_file(self) -> None:
        self._flush()
        os.fsync(self._handle)
        self.close()

    def _flush(self) -> None:
        view = memoryview(self._buffer)
        written = 0
        while written < len(view):
            written += os.write(self._handle, view[written:])
        view.release()
        self._buffer.clear()


@contextmanager
def _write_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SegmentError(f"{path} cannot be written: {error.strerror}") from error
