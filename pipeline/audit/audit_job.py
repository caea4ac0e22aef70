"""The audit of a log in Spark: the rules for every group, and S1 over the ownership intervals."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql
from pyspark.sql.functions import col, lit, when

from pipeline.audit.audit_rules import make_audit_observers
from pipeline.audit.findings import AUDIT_TABLES, DELETIONS, VIOLATIONS
from pipeline.schema import UNKNOWN_TYPE, UNKNOWN_VERSION
from pipeline.tables.committed_offsets import compute_offset_commits, compute_offset_lives
from pipeline.tables.histories.group_histories import (
    compute_history,
    select_group_events,
    select_table,
)
from pipeline.tables.histories.group_state import read_topic_id
from pipeline.tables.histories.history_tables import HISTORY_TABLES, PARTITION_OWNERSHIP
from pipeline.tables.histories.written_records import OFFSET_COMMIT_TYPE
from pipeline.tables.record_table import FIRST_GROUP_TYPE, count_problems
from pipeline.tables.tables_job import Tell
from pipeline.tables.writing import PARQUET, TableFolder
from storage.codec.errors import CodecError
from storage.codec.to_json import key_to_json, value_to_json

MANIFEST = "_audit.json"
"""Written last. It has its own name because the folder may also have the tables of a log."""

DEFAULT_RETENTION_MS = 7 * 24 * 60 * 60 * 1000
SHOWN_VIOLATIONS = 1_000
"""Limit on the violations shown with their records; all are counted."""

SHOWN_DAMAGES = 10

_AUDITED = (
    "log_partition",
    "offset",
    "base_offset",
    "ts",
    "producer_id",
    "is_transactional",
    "is_tombstone",
    "type_id",
    "record_type",
    "group_id",
    "topic",
    "topic_id",
    "partition",
    "committed_offset",
    "leader_epoch",
    "metadata",
    "commit_ts",
    "expire_ts",
    "problem",
    "problem_detail",
)
_NEVER = (1 << 63) - 1
_HARMLESS = {UNKNOWN_TYPE, UNKNOWN_VERSION}


@dataclass(frozen=True, slots=True)
class Violation:
    """A record that violates an invariant. ``record`` has its type and Kafka's JSON."""

    rule: str
    group_id: str
    log_partition: int
    offset: int
    detail: str
    record: dict[str, object] | None


class Damage(NamedTuple):
    """An unreadable part of the log: ``detail`` has its file and byte position if known."""

    log_partition: int
    offset: int
    problem: str
    detail: str | None


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit. ``counts`` counts violations by rule; ``violations`` has the first.

    ``damages`` are the first unreadable parts of the log.
    """

    records: int
    groups: int
    counts: dict[str, int]
    violations: list[Violation]
    deletions: dict[str, int] = field(default_factory=dict)
    problems: dict[str, int] = field(default_factory=dict)
    damages: tuple[Damage, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether no invariant is violated and all that a coordinator uses could be read.

        Like a coordinator, it ignores records of types and versions of a newer Kafka.
        """
        return not self.counts and self.problems.keys() <= _HARMLESS

    def verdict(self) -> str:
        """The problems, in one line."""
        parts = []
        if self.counts:
            rules = ", ".join(f"{rule}: {count}" for rule, count in sorted(self.counts.items()))
            parts.append(f"the log violates invariants of groups: {rules}")
        damaged = sum(self.problems[name] for name in self.problems.keys() - _HARMLESS)
        if damaged:
            parts.append(f"parts of the log could not be read: {damaged}")
        return "; ".join(parts)


def prune_records(records: DataFrame) -> DataFrame:
    """The columns that an audit needs: for offset records without key and value bytes."""
    is_group = col("type_id") >= FIRST_GROUP_TYPE
    return records.select(
        *_AUDITED,
        when(is_group | col("problem").isNotNull(), col("key")).alias("key"),
        when(is_group, col("value")).alias("value"),
    )


def compute_findings(records: DataFrame, retention_ms: int) -> DataFrame:
    """Violations, deletions and ownership of every group, in the rows of ``compute_history``."""
    commits = compute_offset_commits(records)
    offsets = _select_offset_events(compute_offset_lives(commits))
    events = select_group_events(records, with_unknown=True).unionByName(offsets)
    tables = {**AUDIT_TABLES, PARTITION_OWNERSHIP: HISTORY_TABLES[PARTITION_OWNERSHIP]}
    names = _find_topic_names(records)
    return compute_history(
        events, tables, lambda rows: make_audit_observers(rows, retention_ms, names)
    )


def _find_topic_names(records: DataFrame) -> dict[bytes, str]:
    """The names of topic ids, from commits that have both."""
    pairs = records.where(col("topic_id").isNotNull() & col("topic").isNotNull())
    found = pairs.groupBy("topic_id").agg(sql.max("topic").alias("topic")).collect()
    return {read_topic_id(row["topic_id"]): row["topic"] for row in found}


def _select_offset_events(lives: DataFrame) -> DataFrame:
    """The first commit and the deletion of each offset's life, in one sorted pass."""
    birth = sql.struct(
        col("born_offset").alias("offset"),
        col("born.base_offset").alias("base_offset"),
        col("born.ts").alias("ts"),
        sql.unhex(lit("")).alias("value"),
    )
    deletion = sql.struct(
        col("deleted_offset").alias("offset"),
        col("deleted_base_offset").alias("base_offset"),
        col("deleted_ts").alias("ts"),
        lit(None).cast("binary").alias("value"),
    )
    happened = when(col("deleted_offset").isNull(), sql.array(birth)).otherwise(
        sql.array(birth, deletion)
    )
    return lives.withColumn("event", sql.explode(happened)).select(
        "log_partition",
        "group_id",
        "event.offset",
        "event.base_offset",
        sql.unix_millis("event.ts").alias("ts_ms"),
        lit(OFFSET_COMMIT_TYPE).alias("type_id"),
        lit(None).cast("binary").alias("key"),
        "event.value",
        lit(False).alias("goes_on"),
        "topic",
        col("partition").alias("topic_partition"),
        sql.unix_millis("commit_ts").alias("commit_ts_ms"),
        sql.unix_millis("expire_ts").alias("expire_ts_ms"),
    )


def find_overlaps(ownership: DataFrame) -> DataFrame:
    """S1: ownership intervals that begin before another member's interval has ended."""
    place = (
        Window.partitionBy(
            "log_partition", "group_id", sql.coalesce("topic_id", "topic"), "partition"
        )
        .orderBy("from_write", "offset", "member_id")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    end = sql.coalesce(col("to_write"), lit(_NEVER))
    before = sql.max(sql.struct(end.alias("end"), col("member_id"))).over(place)
    name = sql.concat_ws("-", sql.coalesce("topic", "topic_id"), col("partition").cast("string"))
    return (
        ownership.withColumn("before", before)
        .where(col("before.end") > col("from_write"))
        .select(
            lit("S1").alias("rule"),
            sql.concat(
                name, lit(" is owned by "), "before.member_id", lit(" and "), "member_id"
            ).alias("detail"),
            "group_id",
            "log_partition",
            "offset",
            "ts",
        )
    )


def compute_violations(findings: DataFrame) -> DataFrame:
    """All violations, including S1."""
    overlaps = find_overlaps(select_table(findings, PARTITION_OWNERSHIP))
    return select_table(findings, VIOLATIONS).unionByName(overlaps)


def audit_records(
    records: DataFrame,
    retention_ms: int = DEFAULT_RETENTION_MS,
    *,
    out: str | None = None,
    file_format: str = PARQUET,
    tell: Tell = lambda name, rows: None,
) -> Audit:
    """Audit the records of a log; ``out`` is a folder for the findings, as tables."""
    pruned = prune_records(records).persist()
    findings = compute_findings(pruned, retention_ms).persist()
    try:
        totals = pruned.agg(sql.count("*"), sql.count_distinct("group_id")).first()
        assert totals is not None
        violations = compute_violations(findings)
        if out is not None:
            folder = TableFolder(records.sparkSession, out, file_format, MANIFEST)
            tables = {VIOLATIONS: violations, DELETIONS: select_table(findings, DELETIONS)}
            _write_findings(folder, tables, tell)
        counts = violations.groupBy("rule").count().collect()
        deletions = select_table(findings, DELETIONS).groupBy("explanation").count().collect()
        return Audit(
            int(totals[0]),
            int(totals[1]),
            {row["rule"]: row["count"] for row in counts},
            _show_violations(violations, pruned) if counts else [],
            {row["explanation"]: row["count"] for row in deletions},
            count_problems(pruned),
            _find_damages(pruned),
        )
    finally:
        findings.unpersist()
        pruned.unpersist()


def _write_findings(folder: TableFolder, tables: dict[str, DataFrame], tell: Tell) -> None:
    folder.recover()
    folder.delete_manifest()
    rows = {}
    for name, table in tables.items():
        rows[name] = folder.write(name, table)
        tell(name, rows[name])
    folder.write_manifest({"tables": rows, "format": folder.format})


def _find_damages(records: DataFrame) -> tuple[Damage, ...]:
    is_damage = col("problem").isNotNull() & ~col("problem").isin(*_HARMLESS)
    found = records.where(is_damage).select("log_partition", "offset", "problem", "problem_detail")
    first = found.orderBy("log_partition", "offset").limit(SHOWN_DAMAGES).collect()
    return tuple(Damage(*row) for row in first)


def _show_violations(violations: DataFrame, records: DataFrame) -> list[Violation]:
    first = violations.orderBy("log_partition", "offset", "rule", "detail").limit(SHOWN_VIOLATIONS)
    place = ["log_partition", "offset"]
    shown = records.select(
        *place, "record_type", "type_id", "key", "value", "topic", "partition", "is_tombstone"
    )
    found = shown.join(sql.broadcast(first), place).orderBy(*place, "rule", "detail").collect()
    return [
        Violation(
            row["rule"],
            row["group_id"],
            row["log_partition"],
            row["offset"],
            row["detail"],
            _show_record(row.asDict()),
        )
        for row in found
    ]


def _show_record(row: dict[str, Any]) -> dict[str, object]:
    key, value, type_id = row["key"], row["value"], row["type_id"]
    shown: dict[str, object] = {"type": row["record_type"]}
    if not isinstance(type_id, int) or type_id < FIRST_GROUP_TYPE:
        group = {"group": row["group_id"], "topic": row["topic"], "partition": row["partition"]}
        return {**shown, "key": group, "value": None}
    try:
        shown["key"] = key_to_json(bytes(key))
        shown["value"] = None if value is None else value_to_json(type_id, bytes(value))
    except CodecError:
        shown["key"] = bytes(key).hex()
    return shown


def show_violation(violation: Violation) -> str:
    """The violation in one line, with the record as JSON."""
    record = json.dumps(violation.record, ensure_ascii=False)
    return (
        f"{violation.rule} partition {violation.log_partition} offset {violation.offset} "
        f"group {violation.group_id}: {violation.detail}: {record}"
    )
