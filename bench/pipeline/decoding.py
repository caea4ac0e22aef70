"""Segments decoded to ``records`` by Spark, beside DumpLogSegments on the same file."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.pipeline.commit_segment import RECORDS, write_segments
from bench.pipeline.kafka_dump import DumpRun, measure_dump
from bench.pipeline.processes import PeakMemory, read_cpu_s

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SMALL_RECORDS = 1000
TARGET_RATIO = 5.0


@dataclass(frozen=True, slots=True)
class SparkRun:
    """Every column of every record, made and thrown away.

    ``seconds`` is without what a query takes for a small segment; ``cpu_s`` has it.
    """

    segments: int
    seconds: float
    cpu_s: float
    peak_mib: float

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.segments * RECORDS / self.seconds


@dataclass(frozen=True, slots=True)
class DecodingResult:
    """Kafka's runs over one segment, and Spark's, all in one run and in turns."""

    dumps: Sequence[DumpRun]
    runs: Sequence[SparkRun]

    @property
    def kafka_rate(self) -> float:
        """Records a second, the median."""
        return RECORDS / statistics.median(run.seconds for run in self.dumps)

    @property
    def kafka_cpu_us(self) -> float:
        """Microseconds of processor a record, the median."""
        return statistics.median(run.cpu_s for run in self.dumps) * 1e6 / RECORDS

    def rate(self, segments: int) -> float:
        """Records a second over so many segments, the median."""
        return statistics.median(run.rate for run in self.runs if run.segments == segments)

    def cpu_us(self, segments: int) -> float:
        """Microseconds of processor a record, the median."""
        taken = [run.cpu_s for run in self.runs if run.segments == segments]
        return statistics.median(taken) * 1e6 / (segments * RECORDS)

    @property
    def cpu_ratio(self) -> float:
        """How much less processor time Spark's best run over one segment takes than Kafka."""
        best = min(run.cpu_s for run in self.runs if run.segments == 1)
        return statistics.median(run.cpu_s for run in self.dumps) / best

    def peak_mib(self, segments: int) -> float:
        """The most memory over so many segments."""
        return max(run.peak_mib for run in self.runs if run.segments == segments)

    @property
    def ratio(self) -> float:
        """How much quicker Spark is on one segment."""
        return self.rate(1) / self.kafka_rate


def measure_decoding(
    folder: Path, counts: Sequence[int], rounds: int, *, warm_ups: int = 3
) -> DecodingResult:
    """Kafka and Spark in turns, ``rounds`` times; ``counts`` are numbers of segments, among them 1.

    Start-up is apart on both sides: what each takes for a small segment, and of Spark also its
    session and ``warm_ups`` queries, in which workers start and the JVM compiles. The tool cannot
    be warmed up: it ends after one file.
    """
    from pipeline.session import make_session

    small = write_segments(folder / "small", 1, records=_SMALL_RECORDS)
    logs = {count: write_segments(folder / str(count), count) for count in counts}
    (segment,) = logs[1].glob("*/*.log")
    (small_segment,) = small.glob("*/*.log")
    spark = make_session("muster-bench", master="local[2]", spark_ui_showConsoleProgress="false")
    spark.sparkContext.setLogLevel("ERROR")
    try:
        for _ in range(warm_ups):
            run_spark(spark, logs[1], 1)
        kafka, runs = [], []
        for _ in range(rounds):
            kafka.append(measure_dump(segment, small_segment))
            for count, path in logs.items():
                start = run_spark(spark, small, 1)
                runs.append(_subtract(run_spark(spark, path, count), start))
    finally:
        spark.stop()
    return DecodingResult(kafka, runs)


def _subtract(whole: SparkRun, start: SparkRun) -> SparkRun:
    # On a busy machine a query for nothing may take longer than a whole one.
    seconds = max(whole.seconds - start.seconds, whole.seconds / 10)
    return replace(whole, seconds=seconds)


def run_spark(spark: SparkSession, path: Path, segments: int) -> SparkRun:
    """Reads a folder of segments to the last column."""
    from pipeline.session import read_records

    with PeakMemory() as memory:
        started, cpu_before = time.monotonic(), read_cpu_s()
        read_records(spark, path).write.format("noop").mode("overwrite").save()
        seconds, cpu_s = time.monotonic() - started, read_cpu_s() - cpu_before
    return SparkRun(segments, seconds, cpu_s, memory.peak_mib)
