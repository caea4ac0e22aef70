"""A minute of `make stream`: tables that follow a live store under load, and are killed once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.pipeline.live_stream import compare, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECONDS = 60.0
RATE = 20_000


@pytest.mark.timeout(400)
def test_tables_that_follow_a_store_end_as_those_of_a_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    outcome = run(tmp_path, SECONDS, RATE, kills=1)
    compare(spark, tmp_path, outcome)
    assert outcome.kills == 1
    assert outcome.sent >= RATE * SECONDS / 2
    assert outcome.rows["offset_commits"] >= outcome.sent
    assert outcome.differing == []
