"""Times decoding segments to the table ``records`` on Spark, and DumpLogSegments on the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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

TABLE, ROWS = "table", "rows"
"""Parquet as written by `muster pipeline tables`; rows of all columns, passed to Spark."""


@dataclass(frozen=True, slots=True)
class SparkRun:
    """Seconds and CPU to decode every column of every record, less those of a small segment."""

    what: str
    segments: int
    seconds: float
    cpu_s: float
    peak_mib: float

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.segments * RECORDS / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU microseconds per record."""
        return self.cpu_s * 1e6 / (self.segments * RECORDS)


@dataclass(frozen=True, slots=True)
class DecodingResult:
    """Kafka's runs on one segment and Spark's runs, interleaved."""

    dumps: Sequence[DumpRun]
    runs: Sequence[SparkRun]
    table_bytes: float
    """Bytes per record on disk."""

    @property
    def kafka_rate(self) -> float:
        """Records per second in the fastest run: other load only makes runs slower."""
        return RECORDS / min(run.seconds for run in self.dumps)

    @property
    def kafka_cpu_us(self) -> float:
        """The least CPU microseconds per record."""
        return min(run.cpu_s for run in self.dumps) * 1e6 / RECORDS

    def rate(self, segments: int = 1, what: str = TABLE) -> float:
        """Records per second for a number of segments, in the fastest run."""
        return max(run.rate for run in self._find(segments, what))

    def cpu_us(self, segments: int = 1, what: str = TABLE) -> float:
        """The least CPU microseconds per record."""
        return min(run.cpu_us for run in self._find(segments, what))

    def peak_mib(self, segments: int = 1, what: str = TABLE) -> float:
        """The peak memory for a number of segments."""
        return max(run.peak_mib for run in self._find(segments, what))

    @property
    def ratio(self) -> float:
        """How many times faster Spark writes the table of one segment."""
        return self.rate() / self.kafka_rate

    @property
    def cpu_ratio(self) -> float:
        """How many times less CPU it uses for that."""
        return self.kafka_cpu_us / self.cpu_us()

    def _find(self, segments: int, what: str) -> list[SparkRun]:
        return [run for run in self.runs if (run.segments, run.what) == (segments, what)]


def measure_decoding(
    folder: Path, counts: Sequence[int], rounds: int, *, warm_ups: int = 3
) -> DecodingResult:
    """Run Kafka and Spark in turns, ``rounds`` times; ``counts`` are numbers of segments, with 1.

    Start-up time is subtracted on both sides: the time for a small segment. For Spark it also
    excludes the session and ``warm_ups`` queries, in which workers start and the JVM compiles.
    DumpLogSegments cannot be warmed up: it ends after one file.
    """
    from pipeline.session import make_session

    small = write_segments(folder / "small", 1, records=_SMALL_RECORDS)
    logs = {count: write_segments(folder / str(count), count) for count in counts}
    (segment,) = logs[1].glob("*/*.log")
    (small_segment,) = small.glob("*/*.log")
    spark = make_session("muster-bench", master="local[2]", spark_ui_showConsoleProgress="false")
    spark.sparkContext.setLogLevel("ERROR")
    jobs: dict[str, Callable[[Path], object]] = {
        TABLE: lambda path: write_table(spark, path, folder / "out"),
        ROWS: lambda path: make_rows(spark, path),
    }

    starts: list[SparkRun] = []
    wholes: list[SparkRun] = []

    def measure(what: str, count: int) -> None:
        starts.append(_time(jobs[what], small, what, 1))
        wholes.append(_time(jobs[what], logs[count], what, count))

    try:
        for _ in range(warm_ups):
            for what in jobs:
                _time(jobs[what], logs[1], what, 1)
        dumps = []
        for _ in range(rounds):
            dumps.append(measure_dump(segment, small_segment))
            measure(ROWS, 1)
            for count in counts:
                measure(TABLE, count)
    finally:
        spark.stop()
    table_bytes = check_table(folder / "out", counts[-1] * RECORDS)
    runs = [_subtract(run, [start for start in starts if start.what == run.what]) for run in wholes]
    return DecodingResult(dumps, runs, table_bytes)


def write_table(spark: SparkSession, path: Path, out: Path) -> None:
    """Write ``records`` of a folder of segments, replacing the previous table."""
    from pipeline.tables.tables_job import write_records
    from pipeline.tables.writing import TableFolder

    folder = TableFolder(spark, str(out))
    folder.recover()
    write_records(spark, folder, path)


def make_rows(spark: SparkSession, path: Path) -> None:
    """Decode all columns of a folder of segments, and discard the rows."""
    from pipeline.session import read_records

    read_records(spark, path).write.format("noop").mode("overwrite").save()


def check_table(out: Path, records: int) -> float:
    """The bytes per record in the table; raises if the number of records is wrong."""
    import pyarrow.parquet as pq

    files = list((out / "records").glob("*/*.parquet"))
    found = sum(pq.read_metadata(file).num_rows for file in files)
    if found != records:
        raise RuntimeError(f"the table has {found} records of {records}")
    return sum(file.stat().st_size for file in files) / records


def _time(job: Callable[[Path], object], path: Path, what: str, segments: int) -> SparkRun:
    with PeakMemory() as memory:
        started, cpu_before = time.monotonic(), read_cpu_s()
        job(path)
        seconds, cpu_s = time.monotonic() - started, read_cpu_s() - cpu_before
    return SparkRun(what, segments, seconds, cpu_s, memory.peak_mib)


def _subtract(whole: SparkRun, starts: Sequence[SparkRun]) -> SparkRun:
    """Subtract the minimum of the start-up times: other load may have delayed any of them."""
    seconds = whole.seconds - min(start.seconds for start in starts)
    cpu_s = whole.cpu_s - min(start.cpu_s for start in starts)
    # A single start-up query may still have taken longer than a whole run.
    return replace(
        whole, seconds=max(seconds, whole.seconds / 10), cpu_s=max(cpu_s, whole.cpu_s / 10)
    )
