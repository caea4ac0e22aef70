"""A Muster store as a log, read beside its server up to the durable offset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from model.ids import LogOffset, LogPartition
from pipeline.decoding.blocks import find_first_offset
from pipeline.decoding.bounds import Bounds
from pipeline.decoding.byte_source import BytesInMemory
from pipeline.decoding.scan import BLOCK_BYTES, Piece, scan_batches
from pipeline.source.errors import NewerStore, SourceError
from pipeline.source.logs.group_log import Slice, StoreSlice
from pipeline.source.logs.marks import Mark
from pipeline.source.logs.offset_slices import find_change_in, find_mark_in, plan_offsets
from storage.log_store import FormatTooNew, StoreError, read_batch_range
from storage.rocks.rocks_reader import RocksLogReader, open_store_reader


class StoreLog:
    """See ``GroupLog``: the store at the time of creation or of ``refresh``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reader = _open(folder)
        self.partitions = tuple(range(self._reader.partitions))

    @property
    def notes(self) -> tuple[str, ...]:
        """See ``GroupLog``."""
        return ()

    @property
    def identity(self) -> str | None:
        """See ``GroupLog``: the store's cluster id."""
        return f"cluster:{self._reader.cluster_id}"

    def beginning(self, partition: int) -> int:
        """See ``GroupLog``: trimming keeps each key's last record at its own offset."""
        return 0

    def end(self, partition: int) -> int:
        """See ``GroupLog``."""
        with store_errors():
            return int(self._reader.durable_offset(LogPartition(partition)))

    def find_time(self, partition: int, wall_ms: int) -> int | None:
        """See ``GroupLog``; reads all batches before the result."""
        bounds = Bounds(end_offset=self.end(partition), start_ms=wall_ms)
        return find_first_offset(_read_pieces(self._reader, partition, bounds), bounds)

    def find_next(self, partition: int, start: int, end: int) -> int:
        """See ``GroupLog``."""
        with store_errors():
            batch = next(self._reader.read_log(LogPartition(partition), LogOffset(start)), None)
        return end if batch is None else min(end, max(start, read_batch_range(batch)[0]))

    def find_mark(self, partition: int, start: int, end: int) -> Mark | None:
        """See ``GroupLog``."""
        with store_errors():
            batch = self._reader.read_batch_before(LogPartition(partition), LogOffset(end))
        return find_mark_in(batch, Bounds(start, end))

    def find_change(self, partition: int, mark: Mark) -> str | None:
        """See ``GroupLog``."""
        bounds = Bounds(mark.base_offset, mark.last_offset + 1)
        return find_change_in(
            _read_pieces(self._reader, partition, bounds), mark, str(self._folder)
        )

    def plan(
        self, wanted: Sequence[tuple[int, Bounds]], min_slices: int | None
    ) -> list[list[Slice]]:
        """See ``GroupLog``."""
        folder = str(self._folder.absolute())

        def make(partition: int, bounds: Bounds, weight: int) -> StoreSlice:
            return StoreSlice(partition, folder, bounds, weight)

        return plan_offsets(wanted, self.end, min_slices, make)

    def refresh(self) -> None:
        """See ``GroupLog``."""
        self.close()
        self._reader = _open(self._folder)
        self.partitions = tuple(range(self._reader.partitions))

    def close(self) -> None:
        """See ``GroupLog``."""
        self._reader.close()


def read_store_slices(slices: Sequence[StoreSlice]) -> Iterator[tuple[StoreSlice, Piece]]:
    """The pieces of slices of one store, which is opened once."""
    reader = _open(Path(slices[0].folder))
    try:
        for part in slices:
            for piece in _read_pieces(reader, part.partition, part.bounds):
                yield part, piece
    finally:
        reader.close()


def _read_pieces(reader: RocksLogReader, partition: int, bounds: Bounds) -> Iterator[Piece]:
    held: list[bytes] = []
    size = 0
    with store_errors():
        for batch in reader.read_log(LogPartition(partition), LogOffset(bounds.start_offset)):
            if bounds.end_offset is not None and read_batch_range(batch)[0] >= bounds.end_offset:
                break
            held.append(batch)
            size += len(batch)
            if size >= BLOCK_BYTES:
                yield from scan_batches(BytesInMemory(b"".join(held)))
                held, size = [], 0
    yield from scan_batches(BytesInMemory(b"".join(held)))


def _open(folder: Path) -> RocksLogReader:
    with store_errors():
        return open_store_reader(folder)


@contextmanager
def store_errors() -> Iterator[None]:
    try:
        yield
    except FormatTooNew as error:
        raise NewerStore(str(error)) from error
    except StoreError as error:
        raise SourceError(str(error)) from error
