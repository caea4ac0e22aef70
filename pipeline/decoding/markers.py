"""Transaction markers, which are rare enough to decode one by one."""

from __future__ import annotations

from typing import NamedTuple

from pipeline.decoding.json_text import dump
from storage.codec.batches import BatchRecord, decode_marker
from storage.codec.errors import CodecError
from storage.columnar.record_columns import RecordColumns


class MarkerRow(NamedTuple):
    """The marker's type name, Kafka's fields as JSON, and the decoding error."""

    record_type: str
    value_json: str | None = None
    problem: str | None = None


def read_marker(records: RecordColumns, row: int) -> MarkerRow:
    """Decode the control record of a row; other control types are ``control``."""
    data, offset = records.data, int(records.offsets[row])
    key_start, value_start = int(records.key_starts[row]), int(records.value_starts[row])
    key = data[key_start : key_start + max(0, int(records.key_lengths[row]))]
    value = data[value_start : value_start + max(0, int(records.value_lengths[row]))]
    try:
        marker = decode_marker(BatchRecord(offset, 0, key, value))
    except CodecError as error:
        return MarkerRow("control", problem=str(error))
    if marker is None:
        return MarkerRow("control")
    name = "COMMIT" if marker.committed else "ABORT"
    return MarkerRow(f"control:{name}", dump({"coordinatorEpoch": marker.coordinator_epoch}))
