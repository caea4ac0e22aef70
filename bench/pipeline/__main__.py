"""`make pipeline-bench`: the pipeline beside Kafka's DumpLogSegments, in one run.

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
from bench.pipeline.decoding import TARGET_RATIO, DecodingResult, measure_decoding

PAGE = Path(__file__).parent / "RESULTS.md"


def main(arguments: Sequence[str]) -> int:
    """Prints the page and writes it; 1 where the target is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.pipeline", description=__doc__)
    parser.add_argument("--segments", type=int, nargs="+", default=[1, 5, 20])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=Path, default=PAGE)
    chosen = parser.parse_args(arguments)
    share_cores()
    machine = describe_machine()
    counts = sorted({1, *chosen.segments})
    with TemporaryDirectory(prefix="muster-pipeline-bench-") as folder:
        result = measure_decoding(Path(folder), counts, chosen.rounds)
    page = make_page(result, counts, machine)
    print(page)
    chosen.page.write_text(page, encoding="utf-8")
    return int(result.ratio < TARGET_RATIO)


def make_page(result: DecodingResult, counts: Sequence[int], machine: dict[str, object]) -> str:
    """The figures as Markdown."""
    verdict = "reached" if result.ratio >= TARGET_RATIO else "MISSED"
    lines = [
        "# The pipeline: segments to `records`",
        "",
        f"{machine['date']}, {machine['cpu']}, {machine['cores_used']} cores, load before the run "
        f"{machine['load_before']}. Kafka's DumpLogSegments and Spark (local[2]) in turns, "
        "what each takes for a segment of 1,000 records apart (not of CPU), and Spark warmed up by "
        "three queries. "
        f"A segment has {RECORDS:,} offset commits of 10 groups with 100 "
        "partitions each (`bench/pipeline/commit_segment.py`); Spark makes every column of "
        "every record.",
        "",
        "| what | records/s | CPU a record | peak memory, all processes |",
        "| --- | --- | --- | --- |",
        f"| DumpLogSegments, 1 segment | {result.kafka_rate:,.0f} "
        f"| {result.kafka_cpu_us:.2f} µs | |",
    ]
    for count in counts:
        noun = "segment" if count == 1 else "segments"
        rate, peak = result.rate(count), result.peak_mib(count)
        cpu = f"{result.cpu_us(count):.2f} µs"
        lines.append(f"| Spark, {count} {noun} | {rate:,.0f} | {cpu} | {peak:,.0f} MiB |")
    lines += [
        "",
        f"Spark takes 1 segment at {result.ratio:.1f} times the rate of Kafka's tool; at least "
        f"{TARGET_RATIO:.0f} times: {verdict}.",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
