"""What an audit found, and which classic groups can be migrated, as figures."""

from __future__ import annotations

from collections import Counter

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.functions import col

from pipeline.audit.audit_job import Audit, audit_records
from pipeline.audit.migration_verdicts import compute_readiness
from pipeline.report.figures import AuditFigures, Finding, JudgedGroup, ReadinessFigures
from translator.readiness import UNLIMITED, MigrationRules

_READY = "READY"
_WORST_FIRST = ("BLOCKED", "WARN")
_SESSION_TIMEOUT_MS = 45_000
"""Kafka's default of group.consumer.session.timeout.ms."""


def compute_judged(records: DataFrame, top: int) -> ReadinessFigures | None:
    """Classic groups by verdict; ``None`` if there are none."""
    rules = MigrationRules(True, UNLIMITED, _SESSION_TIMEOUT_MS, {})
    rows = compute_readiness(records, rules).collect()
    if not rows:
        return None
    rest = [row for row in rows if row["verdict"] != _READY]
    place = {verdict: number for number, verdict in enumerate(_WORST_FIRST)}
    rest.sort(key=lambda row: (place[row["verdict"]], -row["members"], row["group_id"]))
    shown = [
        JudgedGroup(
            row["group_id"],
            row["verdict"],
            row["members"],
            list(dict.fromkeys(reason["detail"] for reason in row["reasons"])),
            row["clients_to_change"],
        )
        for row in rest[:top]
    ]
    counts = Counter(row["verdict"] for row in rows)
    ordered = {name: counts[name] for name in (_READY, *_WORST_FIRST) if name in counts}
    return ReadinessFigures(ordered, shown, len(rest) - len(shown))


def compute_audit(
    records: DataFrame, commits: DataFrame, retention_ms: int, top: int
) -> AuditFigures:
    """What an audit of the records finds, and the offsets of open transactions."""
    audit = audit_records(records, retention_ms)
    waiting = commits.where(col("transaction") == "open").agg(
        sql.count("*"), sql.count_distinct("producer_id")
    )
    opened = waiting.first()
    assert opened is not None
    counts = {**audit.counts, **audit.problems}
    return AuditFigures(counts, _list_findings(audit)[:top], opened[0], opened[1])


def _list_findings(audit: Audit) -> list[Finding]:
    broken = [
        Finding(each.rule, each.group_id, each.log_partition, each.offset, each.detail)
        for each in audit.violations
    ]
    damaged = [
        Finding(each.problem, "", each.log_partition, each.offset, each.detail or "invalid")
        for each in audit.damages
    ]
    return [*broken, *damaged]
