"""The audit in Spark: Kafka's own log, and all planted breaches at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from pipeline.decoding.blocks import decode_blocks
from pipeline.schema import RECORDS
from tests.pipeline.logged import GOLDEN, SEGMENTS
from tests.pipeline.planted_groups import KINDS, Log, epochs_of_a_newer_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MINUTE_MS = 60 * 1000


def test_kafkas_own_log_is_clean(spark: SparkSession) -> None:
    from pipeline.audit.audit_job import audit_records
    from pipeline.tables.record_table import read_records

    audit = audit_records(read_records(spark, SEGMENTS))
    assert audit.is_clean
    assert (audit.records, audit.violations, audit.problems) == (6144, [], {})
    assert audit.deletions == {"group_deleted": 36, "topic_gone": 16, "unexplained": 3}


def test_kafkas_own_expiry_is_clean(spark: SparkSession) -> None:
    from pipeline.audit.audit_job import audit_records
    from pipeline.tables.record_table import read_records

    records = read_records(spark, GOLDEN / "expiry" / "segments")
    audit = audit_records(records, MINUTE_MS)
    assert audit.is_clean
    assert audit.deletions["expired"] > sum(audit.deletions.values()) / 2


def test_every_planted_breach_is_found_with_its_record(spark: SparkSession) -> None:
    """Each in a log partition of its own, so that one audit looks at all of them.

    And one beside them that has nothing but records of a newer version.
    """
    from pipeline.audit.audit_job import audit_records, show_violation
    from pipeline.tables.record_table import name_columns

    batches, planted = [], {}
    for number, kind in enumerate(KINDS):
        log = Log(kind.partition)
        planted[number] = kind, kind.plant(log)
        batches.append(decode_blocks(log.encode(), number))
    legal = Log(5)
    epochs_of_a_newer_version(legal)
    batches.append(decode_blocks(legal.encode(), len(KINDS)))
    table = pa.Table.from_batches(batches, RECORDS)
    audit = audit_records(name_columns(spark.createDataFrame(table)))
    for number, (kind, offset) in planted.items():
        found = [v for v in audit.violations if v.log_partition == number]
        assert {v.rule for v in found} <= {kind.rule} | kind.others, kind.name
        (violation, *_) = [v for v in found if (v.rule, v.offset) == (kind.rule, offset)]
        assert violation.record is not None
        assert violation.record["type"]
        assert f"offset {offset} " in show_violation(violation)
    assert {v.log_partition for v in audit.violations} == planted.keys()
    assert sum(audit.counts.values()) == len(audit.violations)


def test_findings_are_whole_where_the_manifest_is(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes after both tables, and goes before the first is replaced; that of a log stays."""
    from pipeline.audit.audit_job import audit_records
    from pipeline.tables.record_table import read_records
    from pipeline.tables.writing import TableFolder

    of_a_log = tmp_path / "_tables.json"
    of_a_log.write_text("{}")
    records = read_records(spark, GOLDEN / "expiry" / "segments")
    audit = audit_records(records, MINUTE_MS, out=str(tmp_path))
    content = json.loads((tmp_path / "_audit.json").read_text())
    rows = {"violations": 0, "deletions": sum(audit.deletions.values())}
    assert content == {"tables": rows, "format": "parquet"}

    write = TableFolder.write

    def fail_at_the_second(self: TableFolder, name: str, table: DataFrame) -> int:
        if name == "deletions":
            raise OSError("no space left on device")
        return write(self, name, table)

    monkeypatch.setattr(TableFolder, "write", fail_at_the_second)
    with pytest.raises(OSError, match="no space"):
        audit_records(records, MINUTE_MS, out=str(tmp_path))
    assert not (tmp_path / "_audit.json").exists()
    assert of_a_log.exists()
