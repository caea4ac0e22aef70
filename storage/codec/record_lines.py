"""Describes a record of the log: its place, its bytes and their meaning; pure."""

from __future__ import annotations

from typing import Any, TypeAlias

from storage.codec.batches import Batch, BatchRecord, decode_marker
from storage.codec.errors import CodecError
from storage.codec.record_codec import read_type, read_version
from storage.codec.to_json import compute_type_name, key_to_json, value_to_json

JsonObject: TypeAlias = dict[str, Any]

UNKNOWN_TYPE = "UNKNOWN"


def compute_record_line(partition: int, batch: Batch, record: BatchRecord) -> JsonObject:
    """A record of a log partition, as JSON.

    ``key`` and ``value`` are hex; a ``value`` of ``None`` is a tombstone. ``keyJson`` and
    ``valueJson`` are what Kafka's tools print, or ``None`` with the reason in ``keyError`` or
    ``valueError``.
    """
    line: JsonObject = {
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "baseOffset": batch.base_offset,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "key": None if record.key is None else record.key.hex(),
        "value": None if record.value is None else record.value.hex(),
        "headers": len(record.headers),
    }
    if batch.is_control:
        _add_marker(line, record)
    else:
        _add_content(line, record)
    if record.headers:
        line["headersJson"] = [
            {"name": name, "value": None if value is None else value.hex()}
            for name, value in record.headers
        ]
    return line


def _add_marker(line: JsonObject, record: BatchRecord) -> None:
    try:
        marker = decode_marker(record)
    except CodecError as error:
        line |= {"type": f"control:{UNKNOWN_TYPE}", "valueError": str(error)}
        return
    if marker is None:
        line["type"] = f"control:{UNKNOWN_TYPE}"
        return
    line["type"] = "control:COMMIT" if marker.committed else "control:ABORT"
    line["coordinatorEpoch"] = marker.coordinator_epoch


def _add_content(line: JsonObject, record: BatchRecord) -> None:
    line |= {"typeId": None, "type": UNKNOWN_TYPE, "keyJson": None}
    line |= {"valueVersion": None, "valueJson": None}
    try:
        if record.key is None:
            raise CodecError("the record has no key")
        type_id = line["typeId"] = read_type(record.key)
        line["type"] = compute_type_name(type_id) or UNKNOWN_TYPE
        line["keyJson"] = key_to_json(record.key)
    except CodecError as error:
        line["keyError"] = str(error)
    if record.value is None or line["typeId"] is None:
        return
    try:
        line["valueVersion"] = read_version(record.value)
        line["valueJson"] = value_to_json(line["typeId"], record.value)
    except CodecError as error:
        line["valueError"] = str(error)
