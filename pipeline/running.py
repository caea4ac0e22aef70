"""A Spark session for the time of a job, and what its failures are called.

Imports nothing of Spark before it is known to be there.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as SparkSession

_PACKAGES = ("pyspark", "pyarrow", "pandas")


class NotInstalled(Exception):
    """Something that Spark needs is not there; the message says what to install."""


class SparkFailed(Exception):
    """Spark did not start, or gave up; the message is one line."""


def check_installed() -> None:
    """Raises ``NotInstalled`` unless Spark can start."""
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise NotInstalled(
                f"this needs the package {package}: pip install 'muster-server[spark]'"
            )
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise NotInstalled("Spark needs Java 17: install openjdk-17-jre-headless, or set JAVA_HOME")


@contextmanager
def running_session(master: str | None = None) -> Iterator[SparkSession]:
    """A session that is stopped in the end, unless it was there before, as in a notebook.

    ``None`` is the master of ``spark-submit``, or else this machine.
    Raises ``NotInstalled`` and ``SparkFailed``; a ``SourceError`` of the log comes through.
    """
    check_installed()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from pipeline.session import make_session

    was_there = SparkSession.getActiveSession() is not None
    settings = {"spark_ui_showConsoleProgress": "false", "spark_log_level": "ERROR"}
    try:
        spark = make_session(master=master, **settings)
    except (PySparkException, RuntimeError) as error:
        raise SparkFailed(f"Spark does not start: {_read_line(error)}") from error
    try:
        yield spark
    except PySparkException as error:
        raise SparkFailed(f"Spark gave up: {_read_line(error)}") from error
    finally:
        if not was_there:
            spark.stop()


def _read_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
