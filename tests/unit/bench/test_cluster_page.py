"""The page of the pipeline's benchmark, complete or after a failed command."""

from __future__ import annotations

from bench.pipeline.cluster import ClusterRun, Step, make_page
from bench.pipeline.simulated_cluster import Cluster, Written

MACHINE = {"date": "2026-01-01 00:00 UTC", "cpu": "a processor", "load_before": 0.1}
TABLES = Step("tables", 100, 150, 3_000)
WRITTEN = Written(1_000_000, 90_000_000)


def test_the_page_of_a_whole_run_has_every_command_and_the_reckoning() -> None:
    steps = [TABLES, Step("audit", 50, 60, 2_000), Step("report", 10, 20, 1_000)]
    run = ClusterRun(Cluster(), WRITTEN, 3, steps, 50_000_000, {"records": 1_000_000}, 500_000)
    page = make_page(run, MACHINE, 2, "4g")
    assert "| `tables` | 100 s | 10,000 | 150 s | 150.0 µs | 3,000 MiB |" in page
    assert "| all | 160 s | 6,250 | 230 s | 230.0 µs | 3,000 MiB |" in page
    assert "records 1,000,000" in page
    assert "The audit found nothing" in page
    assert "| 16 | 0.4 |" in page
    assert "FAILED" not in page


def test_the_page_of_a_command_that_failed_says_so_and_what_it_said() -> None:
    failed = Step("audit", 50, 60, 2_000, "`audit` exits with 1: S1: 3")
    page = make_page(ClusterRun(Cluster(), WRITTEN, 3, [TABLES, failed]), MACHINE, 2, "4g")
    assert "| `audit` **failed** | 50 s |" in page
    assert "S1: 3" in page
    assert "found nothing" not in page
    assert "only includes what was run" in page
