"""Which classic groups of a log can migrate to the consumer protocol, and what blocks others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import from_arrow_schema

from coordinator.core.state.classic.classic_group import compute_classic_group
from model.ids import GroupId
from model.log.records import GroupMetadataValue, RecordType
from pipeline.schema import TIMESTAMP
from storage.codec.errors import CodecError
from storage.codec.record_codec import decode_value
from translator.readiness import (
    Candidate,
    MigrationRules,
    Readiness,
    compute_candidate,
    compute_migration_readiness,
)

READINESS = pa.schema(
    [
        ("group_id", pa.string()),
        ("verdict", pa.string()),
        ("protocol_type", pa.string()),
        ("protocol", pa.string()),
        ("members", pa.int32()),
        (
            "reasons",
            pa.list_(
                pa.struct(
                    [
                        ("hindrance", pa.string()),
                        ("detail", pa.string()),
                        ("member_id", pa.string()),
                        ("client_id", pa.string()),
                    ]
                )
            ),
        ),
        ("clients_to_change", pa.list_(pa.string())),
        ("log_partition", pa.int32()),
        ("offset", pa.int64()),
        ("ts", TIMESTAMP),
    ]
)
_INPUT = ("group_id", "log_partition", "offset", "ts", "value")


def compute_readiness(records: DataFrame, rules: MigrationRules) -> DataFrame:
    """One row per classic group that exists at the end of the log."""
    latest = (
        records.where((col("type_id") == int(RecordType.GROUP_METADATA)) & col("problem").isNull())
        .groupBy("log_partition", "group_id")
        .agg(sql.max_by(sql.struct("offset", "ts", "value"), col("offset")).alias("latest"))
        .select("group_id", "log_partition", "latest.*")
        .where(col("value").isNotNull())
    )

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [row for found in batch.to_pylist() if (row := _judge_row(found, rules))]
            yield pa.RecordBatch.from_pylist(rows, schema=READINESS)

    return latest.select(*_INPUT).mapInArrow(judge, from_arrow_schema(READINESS))


def _judge_row(found: dict[str, Any], rules: MigrationRules) -> dict[str, Any] | None:
    try:
        _, value = decode_value(RecordType.GROUP_METADATA, found["value"])
    except CodecError:
        return None
    if not isinstance(value, GroupMetadataValue):
        return None
    readiness = compute_migration_readiness(make_candidate(found["group_id"], value), rules)
    return {
        "group_id": found["group_id"],
        "verdict": readiness.verdict.value,
        "protocol_type": value.protocol_type,
        "protocol": value.protocol,
        "members": len(value.members),
        "reasons": _show_reasons(readiness),
        "clients_to_change": list(readiness.clients_to_change()),
        "log_partition": found["log_partition"],
        "offset": found["offset"],
        "ts": found["ts"],
    }


def _show_reasons(readiness: Readiness) -> list[dict[str, Any]]:
    return [
        {
            "hindrance": reason.hindrance.value,
            "detail": reason.detail,
            "member_id": reason.member_id,
            "client_id": reason.client_id,
        }
        for reason in readiness.reasons
    ]


def make_candidate(group_id: str, value: GroupMetadataValue) -> Candidate:
    """The candidate that a classic group's record describes."""
    return compute_candidate(compute_classic_group(GroupId(group_id), value))
