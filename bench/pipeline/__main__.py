"""`make pipeline-bench`: compares the pipeline with Kafka's DumpLogSegments in one run.

python -m bench.pipeline [--segments 1 5 20] [--rounds 3] [--page PAGE]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.machine import describe_machine, share_cores
from bench.pipeline.commit_segment import RECORDS
from bench.pipeline.decoding import ROWS, TABLE, TARGET_RATIO, DecodingResult, measure_decoding
from bench.pipeline.results_page import DECODING, update_results


def main(arguments: Sequence[str]) -> int:
    """Print the page and write it; return 1 if the target is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description=__doc__)
    parser.add_argument("--segments", type=int, nargs="+", default=[1, 5, 20])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=Path, default=DECODING)
    chosen = parser.parse_args(arguments)
    share_cores()
    machine = describe_machine()
    counts = sorted({1, *chosen.segments})
    with TemporaryDirectory(prefix="muster-pipeline-bench-") as folder:
        result = measure_decoding(Path(folder), counts, chosen.rounds)
    page = make_page(result, counts, machine)
    print(page)
    chosen.page.write_text(page, encoding="utf-8")
    update_results(chosen.page)
    return int(result.ratio < TARGET_RATIO)


def make_page(result: DecodingResult, counts: Sequence[int], machine: dict[str, object]) -> str:
    """The figures as Markdown."""
    verdict = "reached" if result.ratio >= TARGET_RATIO else "MISSED"
    most = counts[-1]
    kept = result.rate(most) / result.rate()
    grown = result.peak_mib(most) / result.peak_mib()
    lines = [
        "# The pipeline: segments to `records`",
        "",
        f"{machine['date']}, {machine['cpu']}, {machine['cores_used']} cores, load before the run "
        f"{machine['load_before']}. Kafka's DumpLogSegments and Spark (local[2]) run in turns. "
        "From both the time and CPU for a segment of 1,000 records are subtracted, and "
        "Spark was warmed up by three queries; figures are those of the fastest of several rounds. "
        f"A segment has {RECORDS:,} offset commits of 10 groups with 100 "
        "partitions each (`bench/pipeline/commit_segment.py`).",
        "",
        "DumpLogSegments prints every record to `/dev/null`, in one thread. Spark writes the table "
        "of `muster pipeline tables`: every column of every record, as Parquet files "
        f"on disk, {result.table_bytes:.0f} bytes per record. Rows: every column of every "
        "record, passed to Spark's JVM and discarded, which is how a custom query starts.",
        "",
        "| what | records/s | CPU per record | peak memory, all processes |",
        "| --- | --- | --- | --- |",
        f"| DumpLogSegments, 1 segment | {result.kafka_rate:,.0f} "
        f"| {result.kafka_cpu_us:.2f} µs | |",
    ]
    for count in counts:
        lines.append(_make_line(result, f"table, {_count_segments(count)}", count))
    lines += [
        _make_line(result, "rows, 1 segment", 1, ROWS),
        "",
        f"The table of 1 segment is written at {result.ratio:.1f} times the rate of Kafka's tool, "
        f"with {result.cpu_ratio:.1f} times less CPU; target, at least {TARGET_RATIO:.0f} times "
        f"the rate: {verdict}. For {_count_segments(most)} the rate is {kept:.2f} times that of 1, "
        f"and peak memory {grown:.2f} times.",
        "",
    ]
    return "\n".join(lines)


def _make_line(result: DecodingResult, what: str, count: int, kind: str = TABLE) -> str:
    rate, peak = result.rate(count, kind), result.peak_mib(count, kind)
    return (
        f"| Spark, {what} | {rate:,.0f} | {result.cpu_us(count, kind):.2f} µs | {peak:,.0f} MiB |"
    )


def _count_segments(count: int) -> str:
    return "1 segment" if count == 1 else f"{count} segments"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
