"""A Spark session for the duration of a job, and the errors for its failures.

Does not import Spark before checking that it is installed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pipeline.quiet_start import quiet_start
from pipeline.source.errors import find_cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as SparkSession

_PACKAGES = ("pyspark", "pyarrow", "pandas")


class NotInstalled(Exception):
    """A dependency of Spark is missing; the message says what to install."""


class SparkFailed(Exception):
    """Spark did not start, or failed; the message is one line."""


def check_installed() -> None:
    """Raise ``NotInstalled`` unless Spark can start."""
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise NotInstalled(
                f"this needs the package {package}: pip install 'muster-server[spark]'"
            )
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise NotInstalled("Spark needs Java 17: install openjdk-17-jre-headless, or set JAVA_HOME")


@contextmanager
def running_session(master: str | None = None) -> Iterator[SparkSession]:
    """A session that is stopped at the end, unless it existed before, as in a notebook.

    With ``master`` ``None``, the master is that of ``spark-submit``, or else this machine. Raise
    ``NotInstalled`` and ``SparkFailed``; ``SourceError`` passes through.
    """
    check_installed()
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from pipeline.session import make_session

    was_there = SparkSession.getActiveSession() is not None
    settings = {"spark_ui_showConsoleProgress": "false"}
    try:
        with quiet_start():
            spark = make_session(master=master, **settings)
    except (PySparkException, RuntimeError) as error:
        raise SparkFailed(f"Spark did not start: {_read_line(error)}") from error
    try:
        yield spark
    except PySparkException as error:
        raise find_cause(error) or SparkFailed(f"Spark failed: {_read_line(error)}") from error
    except Py4JJavaError as error:
        # What Hadoop's file systems throw; its own words are those of the JVM's exception.
        line = str(error.java_exception.toString()).partition("\n")[0]
        raise SparkFailed(f"Spark failed: {line}") from error
    finally:
        if not was_there:
            spark.stop()


def _read_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
