"""A real streaming query whose progress is committed to a real server, also after it was away."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.schema import TOPIC
from tests.server import MusterServer
from tests.support.pipeline.blocks import make_log
from tests.support.spark_queries import run_to_the_end
from tests.support.waiting import wait_until

pytestmark = pytest.mark.long

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from pipeline.progress import CommitProgress

confluent_kafka = pytest.importorskip("confluent_kafka")

GROUP = "spark.copy-of-the-log"
QUERY = "copy-of-the-log"
DEADLINE_S = 90.0
LOG = make_log(12)
"""Three records a batch."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MusterServer]:
    with MusterServer(tmp_path / "data", topics={TOPIC: 50}) as server:
        yield server


@pytest.fixture
def listener(spark: SparkSession, server: MusterServer) -> Iterator[CommitProgress]:
    from pipeline.progress import commit_progress

    listener = commit_progress(spark, QUERY, group_id=GROUP, bootstrap_servers=server.kafka)
    yield listener
    spark.streams.removeListener(listener)
    listener.close(0)


def test_a_group_follows_the_query_and_catches_up_after_the_server_was_away(
    spark: SparkSession, server: MusterServer, listener: CommitProgress, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    write(log, 3, LOG[:6])
    run_query(spark, tmp_path, log, maxOffsetsPerTrigger="6")
    first = wait_for_commits(listener, {(TOPIC, 3): 18})
    assert first == read_committed(server)
    server.kill()
    write(log, 3, LOG[6:])
    write(log, 8, LOG[:2])
    # The query does not wait for anybody.
    run_query(spark, tmp_path, log)
    server.start()
    assert wait_for_commits(listener, {(TOPIC, 3): 36, (TOPIC, 8): 6}) == read_committed(server)
    assert listener.last_error is None


def write(log: Path, partition: int, batches: list[bytes]) -> None:
    folder = log / f"{TOPIC}-{partition}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{0:020}.log").open("ab") as file:
        file.writelines(batches)


def run_query(spark: SparkSession, folder: Path, log: Path, **options: str) -> None:
    from pipeline.session import stream_records

    writer = (
        stream_records(spark, log, startingOffsets="earliest", **options)
        .select("offset")
        .writeStream.queryName(QUERY)
        .format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
    )
    run_to_the_end(writer.start)


def wait_for_commits(
    listener: CommitProgress, wanted: dict[tuple[str, int], int]
) -> dict[tuple[str, int], int]:
    wait_until(
        lambda: listener.committed == wanted,
        lambda: f"{wanted} are committed: {listener.committed}, {listener.last_error}",
        DEADLINE_S,
    )
    return wanted


def read_committed(server: MusterServer) -> dict[tuple[str, int], int]:
    """What a tool for lag is told, with what each offset is of."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": server.kafka})
    request = confluent_kafka.ConsumerGroupTopicPartitions(GROUP)
    (answer,) = admin.list_consumer_group_offsets([request]).values()
    found: list[Any] = answer.result(timeout=DEADLINE_S).topic_partitions
    return {(each.topic, each.partition): each.offset for each in found}
