"""``format("grouplog")`` as a stream: each record once, over restarts and limits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.schema import TOPIC
from storage.log_store import read_batch_range
from tests.support.pipeline.blocks import make_log
from tests.support.spark_queries import run_to_the_end

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG = make_log(12)


def add(folder: Path, partition: int, batches: Sequence[bytes], *, roll: bool = False) -> None:
    """More of a partition, in its last segment or in a new one."""
    target = folder / f"{TOPIC}-{partition}"
    target.mkdir(exist_ok=True)
    segments = sorted(target.glob("*.log"))
    if roll or not segments:
        segments = [target / f"{read_batch_range(batches[0])[0]:020}.log"]
    with segments[-1].open("ab") as file:
        file.writelines(batches)


class Run:
    """Runs of one query: what it read is in ``out``, where it stands in ``checkpoint``."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.log = folder / "log"
        self.log.mkdir()
        self._spark = spark
        self._out = str(folder / "out")
        self._checkpoint = str(folder / "checkpoint")

    def run(self, **options: str) -> list[dict[str, Any]]:
        """Everything there is, then an end; gives the progress of each micro-batch."""
        from pipeline.session import stream_records

        chosen = {"startingOffsets": "earliest", **options}
        frame = stream_records(self._spark, self.log, **chosen)
        writer = (
            frame.select("partition", "offset", "committed_offset", "problem")
            .writeStream.format("parquet")
            .option("path", self._out)
            .option("checkpointLocation", self._checkpoint)
            .trigger(availableNow=True)
        )
        return run_to_the_end(writer.start)

    def read(self) -> list[tuple[int, int]]:
        """What was written, with doubles if there are any."""
        rows = self._spark.read.parquet(self._out).where("problem is null").collect()
        assert all(row.offset == row.committed_offset for row in rows)
        return sorted((row.partition, row.offset) for row in rows)

    def count_losses(self) -> int:
        return self._spark.read.parquet(self._out).where("problem = 'data_loss'").count()


def test_each_record_is_read_once(spark: SparkSession, tmp_path: Path) -> None:
    run = Run(spark, tmp_path)
    add(run.log, 3, LOG[:4])
    add(run.log, 4, [*LOG[:1], LOG[1][:50]])
    progress = run.run(maxOffsetsPerTrigger="7")
    assert run.read() == [(3, n) for n in range(12)] + [(4, n) for n in range(3)]
    read = [batch["numInputRows"] for batch in progress if batch["numInputRows"]]
    assert sum(read) == 15
    assert max(read) <= 7
    source = progress[-1]["sources"][0]
    assert source["endOffset"][TOPIC] == {"3": 12, "4": 3}
    assert [partition for partition, *_ in source["endOffset"]["read"]] == [3, 4]
    assert source["latestOffset"] == {TOPIC: {"3": 12, "4": 3}}

    # The torn tail became whole, a segment was rolled, and a partition is new.
    add(run.log, 4, [LOG[1][50:]])
    add(run.log, 3, LOG[4:5])
    add(run.log, 3, LOG[5:7], roll=True)
    add(run.log, 6, LOG[:2])
    run.run()
    assert run.read() == [
        *((3, n) for n in range(21)),
        *((4, n) for n in range(6)),
        *((6, n) for n in range(6)),
    ]
    assert sum(batch["numInputRows"] for batch in run.run()) == 0


def test_a_log_that_is_shorter_than_before_is_data_loss(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = Run(spark, tmp_path)
    add(run.log, 3, LOG[:4])
    run.run()
    (segment,) = run.log.glob("*/*.log")
    segment.write_bytes(b"".join(LOG[:2]))
    with pytest.raises(Exception, match="partition 3 ends at offset 6, before 12"):
        run.run()
    run.run(failOnDataLoss="false")
    assert run.count_losses() == 1
    add(run.log, 3, LOG[2:6])
    run.run(failOnDataLoss="false")
    # What comes where the log was cut is new, though it be the same.
    assert run.read() == sorted((3, n) for n in [*range(12), *range(6, 18)])
    assert run.count_losses() == 1
