"""The log of a live server, up to what is durable there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.decoding.blocks import find_first_offset
from pipeline.decoding.bounds import Bounds
from pipeline.decoding.byte_source import BytesInMemory
from pipeline.decoding.scan import BLOCK_BYTES, Piece, scan_batches
from pipeline.source.logs.group_log import ServerSlice, Slice
from pipeline.source.logs.marks import Mark
from pipeline.source.logs.offset_slices import find_change_in, find_mark_in, plan_offsets
from pipeline.source.server.addresses import ServerAddress
from pipeline.source.server.log_calls import PATIENCE_S, LogCalls
from pipeline.source.server.server_access import find_access
from storage.log_store import read_batch_range


class ServerLog:
    """See ``GroupLog``: the log when it was opened, or refreshed."""

    def __init__(self, address: ServerAddress, patience_s: float = PATIENCE_S) -> None:
        self._access = find_access(address)
        self._calls = LogCalls(self._access, patience_s)
        self.refresh()

    @property
    def partitions(self) -> tuple[int, ...]:
        """See ``GroupLog``."""
        return tuple(self._ends)

    @property
    def notes(self) -> tuple[str, ...]:
        """See ``GroupLog``."""
        return ()

    @property
    def identity(self) -> str | None:
        """See ``GroupLog``: the cluster id of the server's store, as of a copy of it."""
        return f"cluster:{self._cluster_id}"

    def beginning(self, partition: int) -> int:
        """See ``GroupLog``: trimming keeps each key's last record at its own offset."""
        return 0

    def end(self, partition: int) -> int:
        """See ``GroupLog``."""
        return self._ends[partition]

    def find_time(self, partition: int, wall_ms: int) -> int | None:
        """See ``GroupLog``; the server looks for the batch."""
        end = self.end(partition)
        bounds = Bounds(end_offset=end, start_ms=wall_ms)
        if not end:
            return None
        messages = self._calls.read(partition, timestamp_ms=wall_ms, end_offset=end)
        pieces = (piece for one in messages for piece in _scan(one.batches))
        return find_first_offset(pieces, bounds)

    def find_next(self, partition: int, start: int, end: int) -> int:
        """See ``GroupLog``."""
        batch = self._read_batch(partition, start, end, offset=start)
        return end if batch is None else min(end, max(start, read_batch_range(batch)[0]))

    def find_mark(self, partition: int, start: int, end: int) -> Mark | None:
        """See ``GroupLog``."""
        batch = self._read_batch(partition, start, end, before_offset=end)
        return find_mark_in(batch, Bounds(start, end))

    def find_change(self, partition: int, mark: Mark) -> str | None:
        """See ``GroupLog``."""
        bounds = Bounds(mark.base_offset, mark.last_offset + 1)
        pieces = read_pieces(self._calls, partition, bounds)
        return find_change_in(pieces, mark, self._access.target)

    def plan(
        self, wanted: Sequence[tuple[int, Bounds]], min_slices: int | None
    ) -> list[list[Slice]]:
        """See ``GroupLog``."""

        def make(partition: int, bounds: Bounds, weight: int) -> ServerSlice:
            return ServerSlice(partition, self._access, bounds, weight)

        return plan_offsets(wanted, self.end, min_slices, make)

    def refresh(self) -> None:
        """See ``GroupLog``."""
        found = self._calls.describe()
        self._cluster_id = found.cluster_id
        self._ends = {part.partition: part.end_offset for part in found.partitions}

    def close(self) -> None:
        """See ``GroupLog``."""
        self._calls.close()

    def _read_batch(self, partition: int, start: int, end: int, **position: int) -> bytes | None:
        """The first batch of a reading."""
        if end <= start:
            return None
        for message in self._calls.read(partition, end_offset=end, max_bytes=1, **position):
            if message.batches:
                return bytes(message.batches)
        return None


def read_server_slices(slices: Sequence[ServerSlice]) -> Iterator[tuple[ServerSlice, Piece]]:
    """The pieces of slices of one server, over one connection."""
    calls = LogCalls(slices[0].access)
    try:
        for part in slices:
            for piece in read_pieces(calls, part.partition, part.bounds):
                yield part, piece
    finally:
        calls.close()


def read_pieces(calls: LogCalls, partition: int, bounds: Bounds) -> Iterator[Piece]:
    """The pieces of a range of offsets that has an end."""
    assert bounds.end_offset is not None
    held: list[bytes] = []
    size = 0
    messages = calls.read(partition, offset=bounds.start_offset, end_offset=bounds.end_offset)
    for message in messages:
        held.append(message.batches)
        size += len(message.batches)
        if size >= BLOCK_BYTES:
            yield from _scan(b"".join(held))
            held, size = [], 0
    yield from _scan(b"".join(held))


def _scan(batches: bytes) -> Iterator[Piece]:
    return scan_batches(BytesInMemory(batches))
