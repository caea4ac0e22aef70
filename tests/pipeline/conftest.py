"""Two Spark sessions for all tests of the pipeline, each of one worker of pytest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kafka.prerequisites import check_java
from tests.pipeline.logged import SEGMENTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pipeline.tables.tables_job import TablesSummary

_FIXTURE = "spark"
_GOLDEN = "golden_summary"
"""The tables of Kafka's own log take half a minute: whoever looks at them is in one group."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a session run one after another."""
    golden = {item.path for item in items if _GOLDEN in getattr(item, "fixturenames", ())}
    for item in items:
        if _FIXTURE in getattr(item, "fixturenames", ()):
            group = _GOLDEN if item.path in golden else _FIXTURE
            item.add_marker(pytest.mark.xdist_group(group))
            # The first of them starts a JVM.
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two processors of this machine; files of its own go to a temporary folder."""
    check_java()
    from pipeline.session import make_session

    folder = tmp_path_factory.mktemp("spark")
    session = make_session(
        "muster-tests",
        master="local[2]",
        spark_local_dir=str(folder / "local"),
        spark_sql_warehouse_dir=str(folder / "warehouse"),
        spark_sql_shuffle_partitions="2",
        spark_driver_memory="1g",
        spark_ui_showConsoleProgress="false",
        # Small data: compiling a plan costs more than it saves.
        spark_sql_adaptive_enabled="false",
        spark_sql_codegen_wholeStage="false",
        spark_sql_codegen_factoryMode="NO_CODEGEN",
        # The first compiler alone: queries of tests end before the second one pays.
        spark_driver_extraJavaOptions="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def golden_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tables of Kafka's own log are, once ``golden_summary`` is there."""
    return tmp_path_factory.mktemp("golden-tables")


@pytest.fixture(scope="session")
def golden_summary(spark: SparkSession, golden_out: Path) -> TablesSummary:
    """All tables of Kafka's own log, written once."""
    from pipeline.tables.tables_job import write_tables

    return write_tables(spark, SEGMENTS, str(golden_out))
