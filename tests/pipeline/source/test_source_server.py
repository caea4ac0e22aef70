"""``format("grouplog")`` of a live server: the tables of its store, and a stream over restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from tests.golden.past_server import PastServer, import_golden, running_past_server
from tests.support.spark_queries import run_to_the_end

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@contextmanager
def serving(folder: Path, port: int = 0) -> Iterator[PastServer]:
    """A server on a thread of its own: Spark's queries block this one."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    running = running_past_server(folder, port=port)

    def run(make: Callable[[], Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(make(), loop).result(60.0)

    try:
        yield run(running.__aenter__)
        run(lambda: running.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def read_rows(frame: DataFrame) -> list[tuple[object, ...]]:
    rows = frame.orderBy("partition", "offset").toArrow().to_pylist()
    return [tuple(sorted((name, str(value)) for name, value in row.items())) for row in rows]


def test_an_error_of_the_source_is_a_line_and_no_traceback(
    spark: SparkSession, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match=r"errors\.NotALog: \S+/none does not exist") as failed:
        spark.read.format("grouplog").load(str(tmp_path / "none")).count()
    assert "Traceback" not in str(failed.value)


def test_a_server_gives_the_rows_of_its_store_also_over_restarts(
    spark: SparkSession, tmp_path: Path
) -> None:
    from pipeline.session import read_records

    store, out = tmp_path / "store", str(tmp_path / "out")
    import_golden(store)
    expected = read_rows(read_records(spark, store))

    def stream(target: str) -> list[int]:
        """One run of the stream; the rows of its micro-batches."""
        reader = spark.readStream.format("grouplog").option("server", target)
        chosen = {"decode": "records", "startingOffsets": "earliest", "maxOffsetsPerTrigger": 2_000}
        writer = (
            reader.options(**chosen)
            .load()
            .writeStream.format("parquet")
            .option("path", out)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
        )
        return [batch["numInputRows"] for batch in run_to_the_end(writer.start)]

    with serving(store) as server:
        batch = spark.read.format("grouplog").option("server", server.target)
        assert read_rows(batch.option("decode", "records").load()) == expected
        counts = [count for count in stream(server.target) if count]
        assert sum(counts) == len(expected)
        assert max(counts) <= 2_000
        port = int(server.target.rpartition(":")[2])
    with serving(store, port) as server:
        assert not any(stream(server.target))
    assert read_rows(spark.read.parquet(out)) == expected
