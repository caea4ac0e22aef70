"""Describes a record of a log with the batch and the file that it is in."""

from __future__ import annotations

from cli.log.log_sources import SourceBatch
from storage.codec.batches import Batch, BatchRecord
from storage.codec.record_lines import JsonObject, compute_record_line

_COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


def compute_line(source: SourceBatch, batch: Batch, record: BatchRecord) -> JsonObject:
    """Everything about a record, as JSON: see ``compute_record_line``."""
    line = compute_record_line(int(source.partition), batch, record)
    return line | {"batch": _compute_batch(source, batch)}


def _compute_batch(source: SourceBatch, batch: Batch) -> JsonObject:
    code = batch.compression
    return {
        "file": None if source.file is None else source.file.name,
        "position": source.position,
        "sizeInBytes": batch.size,
        "lastOffset": batch.last_offset,
        "count": batch.count,
        "crc": batch.crc,
        "partitionLeaderEpoch": batch.leader_epoch,
        "compression": _COMPRESSIONS[code] if code < len(_COMPRESSIONS) else str(code),
        "timestampType": "LogAppendTime" if batch.is_log_append_time else "CreateTime",
        "maxTimestamp": batch.max_timestamp,
        "baseSequence": batch.base_sequence,
        "deleteHorizonMs": batch.delete_horizon_ms,
    }
