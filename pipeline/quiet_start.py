"""Starts the JVM of a command without its greetings: standard error is for what people need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Final

_CONFIG: Final = Path(__file__).with_name("log4j2.properties")
_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
_SUBMITTED: Final = "SPARK_ENV_LOADED"
_GREETINGS: Final = (
    b"WARNING: Using incubator modules: ",
    b"WARNING: package sun.security.action not in java.base",
    b"WARNING: A terminally deprecated method ",
    b"WARNING: sun.misc.Unsafe",
    b"WARNING: Please consider reporting this",
    b"Setting default log level to ",
    b"To adjust logging level use ",
)
"""How lines begin that Java and Spark write before any logging can be set up."""


@contextmanager
def quiet_start() -> Iterator[None]:
    """Within it a JVM may start. ``spark-submit`` has started one, and has settings of its own."""
    if _SUBMITTED in os.environ:
        yield
        return
    before = os.environ.get(_OPTIONS)
    config = f"-Dlog4j2.configurationFile={_CONFIG.as_uri()}"
    os.environ[_OPTIONS] = " ".join(filter(None, (config, before)))
    try:
        with _without_greetings():
            yield
    finally:
        if before is None:
            del os.environ[_OPTIONS]
        else:
            os.environ[_OPTIONS] = before


@contextmanager
def _without_greetings() -> Iterator[None]:
    """Processes that are started within it write to a pipe, which is copied to standard error."""
    sys.stderr.flush()
    kept = os.dup(2)
    reading, writing = os.pipe()
    os.dup2(writing, 2)
    os.close(writing)
    Thread(target=_copy, args=(reading, kept), daemon=True, name="spark-errors").start()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)


def _copy(reading: int, writing: int) -> None:
    """Copy lines until no process has the pipe any more."""
    with os.fdopen(reading, "rb") as source, os.fdopen(writing, "wb", buffering=0) as target:
        for line in source:
            if not line.startswith(_GREETINGS):
                target.write(line)
