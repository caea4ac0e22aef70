"""Records of the log, as they are shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from muster.v1 import record_pb2
from wording.times import render_time

TEXT_MAX: Final = 60
_GROUP_FIELDS: Final = ("group", "groupId")


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record. ``key`` and ``value`` are JSON with line breaks, or say why they are none."""

    offset: int
    time: str
    type: str
    summary: str
    key: str
    value: str
    flags: str
    key_hex: str
    value_hex: str


@dataclass(frozen=True, slots=True)
class LogView:
    """A page of records."""

    log_partition: int
    end_offset: int
    reached_offset: int
    rows: Sequence[RecordRow]


def compute_log_view(answer: record_pb2.ListRecordsResponse, group_id: str = "") -> LogView:
    """What is shown of an answer; the group that was asked for is not said with each record."""
    return LogView(
        answer.log_partition,
        answer.end_offset,
        answer.reached_offset,
        [_make_row(record, group_id) for record in answer.records],
    )


def _make_row(record: record_pb2.LogRecord, group_id: str) -> RecordRow:
    key, value = _decode(record.key_json), _decode(record.value_json)
    flags = [f"batch from {record.base_offset}"]
    if record.is_transactional:
        flags.append(f"transaction of producer {record.producer_id}/{record.producer_epoch}")
    shown = "tombstone" if not record.HasField("value") else record.decode_error
    if record.type.startswith("control:"):
        shown = "ends the transaction"
    return RecordRow(
        record.offset,
        render_time(record.timestamp_ms),
        record.type,
        _summarize(key, value, record, group_id),
        _render(key) or record.decode_error or "–",
        _render(value) or shown or "–",
        ", ".join(flags),
        record.key.hex(),
        record.value.hex(),
    )


def _decode(text: str) -> object:
    return json.loads(text) if text else None


def _render(content: object) -> str:
    return "" if content is None else json.dumps(content, indent=2, ensure_ascii=False)


def _summarize(key: object, value: object, record: record_pb2.LogRecord, group_id: str) -> str:
    """What tells records of one type apart, in one line: the fields of the key, and the numbers
    and short texts of the value."""
    parts = [
        f"{name} {content}"
        for name, content in _find_short(key)
        if not (name in _GROUP_FIELDS and content == group_id)
    ]
    if not record.HasField("value") and not record.type.startswith("control:"):
        return ", ".join([*parts, "deleted"])
    parts += [f"{name} {content}" for name, content in _find_short(value)]
    return ", ".join(parts[:6])


def _find_short(content: object) -> Sequence[tuple[str, object]]:
    if not isinstance(content, dict):
        return ()
    return [
        (name, each)
        for name, each in content.items()
        if isinstance(each, int | str)
        and len(str(each)) <= TEXT_MAX
        and each not in ("", -1)
        and not name.endswith("Timestamp")
    ]
