"""Opens the PATH of `muster log`: a store, a folder of Kafka segments, or one segment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cli.errors import CommandError, ExitCode
from cli.output import print_note
from model.ids import LogPartition

if TYPE_CHECKING:
    from storage.codec.batches import Batch
    from storage.log_store import LatestEntry
    from storage.rocks.rocks_reader import RocksLogReader
    from storage.segments.folder import SegmentFolder


class SourceBatch(NamedTuple):
    """A RecordBatch v2 and where it was found: at byte ``position`` of ``file``.

    Batches of a store have neither. The CRC of batches from segments has been verified.
    """

    partition: LogPartition
    data: bytes
    file: Path | None = None
    position: int | None = None


class LogSource(Protocol):
    """An open PATH. Reading raises ``SegmentError`` or ``StoreError``: see `source_errors`."""

    @property
    def partitions(self) -> tuple[LogPartition, ...]:
        """The partitions that exist, sorted."""
        ...

    @property
    def partition_count(self) -> int:
        """Number of partitions of the topic: exact for a store, at least this for segments."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for users about what was found; not errors."""
        ...

    def read(self, partition: LogPartition) -> Iterator[SourceBatch]:
        """The batches of a partition in offset order.

        For segments, raises ``TornTail`` after all complete batches if the last is incomplete.
        """
        ...

    def close(self) -> None:
        """Close the files."""
        ...


class SegmentSource:
    """Segments written by Kafka or by an export."""

    def __init__(self, folder: SegmentFolder) -> None:
        self.partitions = folder.partitions
        self.partition_count = folder.partition_count
        self.notes = folder.notes
        self._folder = folder

    def read(self, partition: LogPartition) -> Iterator[SourceBatch]:
        """See ``LogSource``."""
        for batch in self._folder.read(
            partition,
        ):
            yield SourceBatch(partition, batch.data, batch.file, batch.position)

    def close(self) -> None:
        """See ``LogSource``."""


class StoreSource:
    """A snapshot of a Muster store at opening time; its server may be running."""

    notes = ()

    def __init__(self, reader: RocksLogReader) -> None:
        self.partitions = tuple(map(LogPartition, range(reader.partitions)))
        self.partition_count = reader.partitions
        self._reader = reader

    def read(self, partition: LogPartition) -> Iterator[SourceBatch]:
        """See ``LogSource``."""
        return (SourceBatch(partition, data) for data in self._reader.read_log(partition))

    def latest(self, partition: LogPartition, key_prefix: bytes) -> Iterator[LatestEntry]:
        """The last committed records of the keys with a prefix."""
        return self._reader.latest(partition, key_prefix)

    def close(self) -> None:
        """See ``LogSource``."""
        self._reader.close()


@contextmanager
def open_source(path: Path) -> Iterator[LogSource]:
    """Open a path read-only. Raises ``CommandError``, also for errors raised in the body."""
    with source_errors():
        source = _open(path)
        try:
            yield source
        finally:
            source.close()


def find_store(path: Path) -> Path | None:
    """The store at a path, which may be a data folder; ``None`` if there is none."""
    from storage.folder import store_folder

    return store_folder.find_store(path)


def _open(path: Path) -> LogSource:
    if not path.exists():
        raise CommandError(f"{path} does not exist", ExitCode.NOT_FOUND)
    store = find_store(path)
    if store is not None:
        from storage.rocks.rocks_reader import open_store_reader

        return StoreSource(open_store_reader(store))
    from storage.segments.folder import open_segments

    return SegmentSource(open_segments(path))


def read_or_report(
    source: LogSource, partition: LogPartition, damaged: list[str]
) -> Iterator[SourceBatch]:
    """Yield the batches of a partition up to the first damage, which is added to ``damaged``.

    A torn tail is not damage; a note tells its position.
    """
    from storage.log_store import StoreError
    from storage.segments.errors import SegmentDamage, TornTail, UnsupportedMessageFormat

    try:
        yield from source.read(partition)
    except TornTail as error:
        print_note(str(error))
    except UnsupportedMessageFormat:
        raise
    except (SegmentDamage, StoreError) as error:
        damaged.append(str(error))


def decode(found: SourceBatch) -> Batch:
    """Decode a batch; raise ``CommandError`` with its place if it is damaged."""
    from storage.codec.batches import decode_batch
    from storage.codec.errors import CodecError
    from storage.log.compression import decompress

    try:
        return decode_batch(found.data, decompress=decompress)
    except CodecError as error:
        where = "" if found.file is None else f", {found.file}, byte {found.position}"
        raise CommandError(f"partition {found.partition}{where}: {error}") from error


@contextmanager
def source_errors() -> Iterator[None]:
    """Convert the errors of reading into a ``CommandError`` with its exit code.

    3 if there is nothing to read, 4 if another version wrote it or it is in use, 1 if it is
    damaged.
    """
    from storage.codec.errors import CodecError
    from storage.log_store import FormatTooNew, StoreError, StoreLocked
    from storage.segments.errors import (
        NotSegments,
        SegmentError,
        TargetInUse,
        UnsupportedMessageFormat,
    )
    from storage.transfer.bulk import NewerBulk

    try:
        yield
    except NotSegments as error:
        raise CommandError(str(error), ExitCode.NOT_FOUND) from error
    except (
        FormatTooNew,
        NewerBulk,
        StoreLocked,
        TargetInUse,
        UnsupportedMessageFormat,
    ) as error:
        raise CommandError(str(error), ExitCode.PRECONDITION) from error
    except (SegmentError, StoreError, CodecError) as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{error.filename} cannot be read: {error.strerror}") from error
