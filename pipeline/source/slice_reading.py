"""Opens a path as a log, and reads slices of it as Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import pyarrow as pa

from pipeline.decoding.blocks import decode_piece, read_records
from pipeline.decoding.raw_rows import make_raw_rows
from pipeline.decoding.record_rows import make_damage_row
from pipeline.decoding.scan import Damage, Piece
from pipeline.schema import DATA_LOSS
from pipeline.source.errors import DataLoss
from pipeline.source.logs.group_log import (
    GroupLog,
    LossSlice,
    SegmentSlice,
    ServerSlice,
    Slice,
    StoreSlice,
)
from pipeline.source.logs.paths import find_path, is_of_other_system
from pipeline.source.logs.segment_log import SegmentLog, read_segment_slice
from pipeline.source.logs.store_log import StoreLog, read_store_slices
from pipeline.source.options import Decode, LogOptions
from pipeline.source.server.addresses import is_server, parse_address
from pipeline.source.server.server_log import ServerLog, read_server_slices
from storage.folder.store_folder import find_store


def open_log(path: str) -> GroupLog:
    """Open the store, data folder, segments or server at a path. Raise ``SourceError``."""
    if is_server(path):
        return ServerLog(parse_address(path))
    found = find_path(path)
    store = find_store(found)
    return SegmentLog(found) if store is None else StoreLog(store)


def find_notes(path: str) -> tuple[str, ...]:
    """Notes about the log at a path that are not errors; raises like ``open_log``.

    There are none for a path of another system.
    """
    if is_of_other_system(path):
        return ()
    log = open_log(path)
    try:
        return log.notes
    finally:
        log.close()


def read_slices(
    slices: Sequence[Slice], options: LogOptions, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The rows of slices, with the columns of the schema.

    The Kafka source has no column for damage, so with ``decode=raw`` damage raises ``DataLoss``
    unless ``failOnDataLoss`` is false.
    """
    for part in slices:
        if isinstance(part, LossSlice) and options.decode is Decode.RECORDS:
            yield make_damage_row(schema, part.partition, part.offset, b"", DATA_LOSS, part.detail)
    for part, piece in _read_pieces(slices):
        if options.decode is Decode.RECORDS:
            yield from decode_piece(piece, part.partition, schema, part.bounds)
            continue
        for found in read_records(piece, part.bounds):
            if not isinstance(found, Damage):
                rows = make_raw_rows(part.partition, *found, schema)
                if rows.num_rows:
                    yield rows
            elif options.fail_on_data_loss and part.bounds.holds_offset(found.offset):
                raise DataLoss(
                    f"partition {part.partition}, offset {found.offset}: {found.detail}; "
                    "use failOnDataLoss=false to skip it"
                )


def _read_pieces(
    slices: Sequence[Slice],
) -> Iterator[tuple[SegmentSlice | StoreSlice | ServerSlice, Piece]]:
    for _, group in groupby(slices, type):
        parts = list(group)
        stores = [part for part in parts if isinstance(part, StoreSlice)]
        if stores:
            yield from read_store_slices(stores)
        served = [part for part in parts if isinstance(part, ServerSlice)]
        if served:
            yield from read_server_slices(served)
        for part in parts:
            if isinstance(part, SegmentSlice):
                for piece in read_segment_slice(part):
                    yield part, piece
