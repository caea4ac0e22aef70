"""A Spark session with the ``grouplog`` source, and logs as DataFrames."""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import sys
import zipfile
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from pipeline.schema import RECORDS
from pipeline.source.data_source import NAME, GroupLogDataSource
from pipeline.source.offset_ranges import check_partitions
from pipeline.source.options import LogOptions, parse_options
from pipeline.source.slice_reading import open_log

_SHIPPED = (
    "muster/assignors",
    "muster/v1",
    "model",
    "storage",
    "coordinator/core",
    "translator",
    "pipeline",
)
"""Packages that executors import; numpy, pyarrow, for a live server grpcio, must be there."""


def make_session(
    app_name: str = "muster-pipeline", *, master: str | None = None, **settings: str
) -> SparkSession:
    """A session with ``grouplog`` registered, by default on all processors of this machine.

    Under ``spark-submit`` it is the submitted one, with its master. ``settings`` have Spark's names
    with ``_`` for ``.``: ``spark_driver_memory="4g"``.
    """
    builder = SparkSession.builder.appName(app_name)
    is_submitted = "SPARK_ENV_LOADED" in os.environ
    if master is None and not is_submitted:
        master = "local[*]"
    if master is not None:
        builder = builder.master(master)
    runs_here = master is not None and is_local(master)
    if runs_here:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name, value in _compute_settings(is_local=runs_here).items():
        builder = builder.config(name, value)
    for name, value in settings.items():
        builder = builder.config(name.replace("_", "."), value)
    spark = builder.getOrCreate()
    register(spark)
    if not is_local(str(spark.sparkContext.master)):
        ship_package(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Register ``format("grouplog")``, and enable filter pushdown to it."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(GroupLogDataSource)


def read_records(
    spark: SparkSession, path: str | Path, *, columns: list[str] | None = None, **options: str
) -> DataFrame:
    """The log at a path as a batch, with the columns of ``schema.RECORDS`` or a subset.

    ``options`` are those of the source. Raise ``SourceError`` at once for invalid options or an
    unreadable path.
    """
    chosen = {"decode": "records", **options, "path": str(path)}
    check(parse_options(chosen))
    reader = spark.read.format(NAME).options(**chosen)
    if columns is not None:
        # Pass a schema instead of a selection, so that other columns are not decoded.
        reader = reader.schema(from_arrow_schema(pa.schema([RECORDS.field(n) for n in columns])))
    return reader.load()


def stream_records(spark: SparkSession, path: str | Path, **options: str) -> DataFrame:
    """As ``read_records``, as a stream; by default from the end, or from ``startingOffsets``."""
    chosen = {"decode": "records", **options, "path": str(path)}
    check(parse_options(chosen))
    return spark.readStream.format(NAME).options(**chosen).load()


def check(options: LogOptions) -> None:
    """Raise ``SourceError`` if the log cannot be read with these options."""
    log = open_log(options.path)
    try:
        for offsets in (options.starting_offsets, options.ending_offsets):
            check_partitions(log, () if offsets is None else tuple(offsets.by_partition))
    finally:
        log.close()


def is_local(master: str) -> bool:
    """Whether executors are threads of this process; those of ``local-cluster`` are not."""
    return master == "local" or master.startswith("local[")


def ship_package(spark: SparkSession) -> None:
    """Send the packages that executors of a cluster import; on one machine they find them."""
    # Executors fetch it when they start, so it must live as long as this process.
    folder = Path(mkdtemp(prefix="muster-package-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    archive = folder / "muster-package.zip"
    write_package(archive)
    spark.sparkContext.addPyFile(str(archive))


def write_package(archive: Path) -> None:
    """Write the packages for executors to a zip file from which Python can import."""
    files: dict[Path, Path] = {}
    for name in _SHIPPED:
        root = _find_root(name.partition("/")[0])
        inits = (root / outer / "__init__.py" for outer in Path(name).parents[:-1])
        for file in (*inits, *sorted((root / name).rglob("*.py"))):
            # Two of the packages may be in one that is not sent as a whole.
            files[file.relative_to(root)] = file
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as package:
        for name_in_archive, file in files.items():
            package.write(file, name_in_archive)


def _find_root(package: str) -> Path:
    """The folder that the package is imported from."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).resolve().parents[1]


def _compute_settings(*, is_local: bool) -> dict[str, str]:
    settings = {
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
    }
    if is_local:
        settings |= {
            "spark.ui.enabled": "false",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # A micro-batch is too small for the default of 200 tasks per shuffle.
            "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        }
    return settings
