"""Logging to standard error: JSON, one object per line, or text for people.

The fields are `ts`, `level` and `event`, followed by the fields of the event. Messages of libraries
are formatted the same way.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, MutableMapping
from typing import Any

import structlog

_GRPC = "grpc._cython.cygrpc"


def configure_logging(form: str, level: str) -> None:
    """Configure structlog and the standard library's logging; ``form`` is auto, json or text."""
    is_text = form == "text" or (form == "auto" and sys.stderr.isatty())
    number = logging.getLevelNamesMapping()[level.upper()]
    few_tracebacks = FewTracebacks(time.monotonic)
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
    ]
    structlog.configure(
        processors=[
            *shared,
            few_tracebacks,
            structlog.processors.format_exc_info,
            put_first,
            _renderer(is_text),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                *shared,
                structlog.stdlib.add_logger_name,
                structlog.stdlib.ExtraAdder(),
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                few_tracebacks,
                structlog.processors.format_exc_info,
                put_first,
                _renderer(is_text),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))
    logging.getLogger(_GRPC).addFilter(_shows_no_header)


def _shows_no_header(record: logging.LogRecord) -> bool:
    """Whether it is none of gRPC's lines with a header that is not UTF-8: it may be a password."""
    return not str(record.msg).startswith("Invalid encoding on")


class FewTracebacks:
    """A processor that drops repeated tracebacks of the same message within an interval.

    A client can trigger the same bug as often as it likes. The message itself is still logged; the
    next traceback comes with the number of those that were dropped.
    """

    def __init__(self, time: Callable[[], float], interval_s: float = 1.0) -> None:
        self._time = time
        self._interval_s = interval_s
        self._next: dict[tuple[str, str], float] = {}
        self._left_out: dict[tuple[str, str], int] = {}

    def __call__(
        self, logger: Any, method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        error = event.get("exc_info")
        if not error:
            return event
        if not isinstance(error, BaseException):
            error = error[1] if isinstance(error, tuple) else sys.exc_info()[1]
        what = str(event.get("event", "")).split(" ", 1)[0]
        key = (what[:_KEY_LENGTH], type(error).__name__)
        now = self._time()
        if now < self._next.get(key, 0.0):
            self._left_out[key] = self._left_out.get(key, 0) + 1
            event.pop("exc_info")
            event["cause"] = f"{type(error).__name__}: {error}"[:_CAUSE_LENGTH]
            return event
        if len(self._next) >= _KEYS_MAX:
            self._next.clear()
            self._left_out.clear()
        self._next[key] = now + self._interval_s
        left_out = self._left_out.pop(key, 0)
        if left_out:
            event["tracebacks_left_out"] = left_out
        return event


_KEY_LENGTH = 100
_CAUSE_LENGTH = 300
_KEYS_MAX = 1_000
_FIRST = ("ts", "level", "event")


def put_first(logger: Any, method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    """A processor that moves the fields common to all messages to the front."""
    return {name: event.pop(name) for name in _FIRST if name in event} | dict(event)


def _renderer(is_text: bool) -> Any:
    if is_text:
        return structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            timestamp_key="ts",
            exception_formatter=structlog.dev.plain_traceback,
        )
    return structlog.processors.JSONRenderer()
