"""The golden records as the rows that ``records`` must have."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

_OFFSET_TYPES = (0, 1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def compute_golden_row(line: dict[str, Any]) -> dict[str, Any]:
    """What a line of Kafka's own decoding says, in the names of the columns."""
    key, value = line["key"], line["value"]
    row: dict[str, Any] = {
        "partition": line["partition"],
        "offset": line["offset"],
        "timestamp": compute_time(line["timestamp"]),
        "base_offset": line["baseOffset"],
        "producer_id": line["producerId"],
        "producer_epoch": line["producerEpoch"],
        "is_transactional": line["isTransactional"],
        "is_control": line["isControl"],
        "key": bytes.fromhex(key),
        "value": None if value is None else bytes.fromhex(value),
        "record_type": line["type"],
        "type_id": line.get("typeId"),
        "is_tombstone": value is None,
        "problem": None,
        "problem_detail": None,
        **compute_decoded(line),
    }
    row["value_version"] = line["valueVersion"] if row["type_id"] is not None and value else None
    return row


def compute_decoded(line: dict[str, Any]) -> dict[str, Any]:
    """The columns that come from Kafka's JSON."""
    if line.get("isControl"):
        coordinator = {"coordinatorEpoch": line["coordinatorEpoch"]}
        return {"group_id": None, "key_json": None, "value_json": coordinator}
    key, value = line["keyJson"], line["valueJson"]
    row = {
        "group_id": key.get("group", key.get("groupId")),
        "member_id": key.get("memberId"),
        "key_json": key,
        "value_json": value,
    }
    if line["typeId"] in _OFFSET_TYPES:
        row |= {"topic": key["topic"], "topic_partition": key["partition"]}
        row |= _compute_commit(value or {})
        if not (value or {}).get("unknownTaggedFields") and not line.get("unknownTag"):
            row |= {"key_json": None, "value_json": None}
    return row


def _compute_commit(value: dict[str, Any]) -> dict[str, Any]:
    leader_epoch = value.get("leaderEpoch", -1)
    topic_id = value.get("topicId", _NO_TOPIC_ID)
    return {
        "committed_offset": value.get("offset"),
        "leader_epoch": None if leader_epoch == -1 else leader_epoch,
        "metadata": value.get("metadata"),
        "commit_timestamp": compute_time(value.get("commitTimestamp", -(1 << 63))),
        "expire_timestamp": compute_expiry(value.get("expireTimestamp", -1)),
        "topic_id": None if topic_id == _NO_TOPIC_ID else topic_id,
    }


def compute_expiry(expiry_ms: int) -> datetime | None:
    """A time of expiry, which is -1 where there is none."""
    return None if expiry_ms == -1 else compute_time(expiry_ms)


def compute_time(wall_ms: int) -> datetime | None:
    """Null where it is outside the years 1 to 9999."""
    try:
        return _EPOCH + timedelta(milliseconds=wall_ms)
    except OverflowError:
        return None


def parse_json(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the pipeline, its JSON as objects."""
    parsed = dict(row)
    for name in ("key_json", "value_json"):
        if row[name] is not None:
            parsed[name] = json.loads(row[name])
    return parsed
