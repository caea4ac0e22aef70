"""A small simulated cluster through `tables`, `audit` and `report`, as bench/ has a large one.

Minutes of CPU for what Spark takes to start, so only with PIPELINE_BENCH=1: `make pipeline-bench`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.pipeline.cluster import run_cluster
from bench.pipeline.simulated_cluster import Cluster
from tests.kafka.prerequisites import check_java

SMALL = Cluster(groups=60, days=2, records=6_000, seed=5)


@pytest.mark.skipif("PIPELINE_BENCH" not in os.environ, reason="only with PIPELINE_BENCH=1")
@pytest.mark.timeout(300)
def test_every_command_comes_to_its_end(tmp_path: Path) -> None:
    check_java()
    run = run_cluster(tmp_path, SMALL, "1g", cores=1)
    assert run.error is None
    assert [step.name for step in run.steps] == ["tables", "audit", "report"]
    assert all(step.cpu_s > 0 and step.peak_mib > 0 for step in run.steps)
    assert run.rows["records"] == run.written.records
    assert run.rows["rebalances"] > 0
    assert run.rows["group_lag"] > 0
    assert run.page_bytes > 10_000
