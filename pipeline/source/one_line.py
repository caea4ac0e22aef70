"""Errors of the source without a traceback of Python: Spark shows the type and the one line."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from pipeline.source.errors import SourceError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_WORKER = "PYTHON_WORKER_FACTORY_"
"""How the variables of the processes begin in which Spark runs Python."""

_HIDE = "SPARK_HIDE_TRACEBACK"


def told_in_one_line(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """A method that Spark calls in a process of its own, which ends with the error."""

    @wraps(method)
    def call(*given: _P.args, **named: _P.kwargs) -> _R:
        try:
            return method(*given, **named)
        except SourceError:
            _hide_traceback()
            raise

    @wraps(method)
    def iterate(*given: _P.args, **named: _P.kwargs) -> Any:
        try:
            yield from method(*given, **named)  # type: ignore[misc]  # it is a generator
        except SourceError:
            _hide_traceback()
            raise

    return iterate if inspect.isgeneratorfunction(method) else call


def _hide_traceback() -> None:
    """Have Spark's handler of the error leave it out, unless this is a process of the user's."""
    if any(name.startswith(_WORKER) for name in os.environ):
        os.environ[_HIDE] = "1"
