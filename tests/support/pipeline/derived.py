"""Runs of `tables` that write `records` alone: the others take ten times as long."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pipeline.tables.tables_job import TablesSummary
    from pipeline.tables.writing import TableFolder


def leave_out_derived(patch: pytest.MonkeyPatch) -> None:
    """From now on batches and streams compute no table from `records`."""
    from pipeline.tables import tables_job, tables_stream
    from pipeline.tables.tables_job import RECORDS, TablesSummary

    def count_records(
        spark: SparkSession, folder: TableFolder, path: str | Path, like: DataFrame, *others: Any
    ) -> TablesSummary:
        return TablesSummary({RECORDS: folder.read(RECORDS, like).count()})

    for job in (tables_job, tables_stream):
        patch.setattr(job, "derive_tables", count_records)
