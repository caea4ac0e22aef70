"""Messages on standard error: JSON, one object a line, or text for people.

The fields are `ts`, `level` and `event`, and what belongs to the event. Messages of libraries go
the same way.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog


def configure_logging(form: str, level: str) -> None:
    """Sets up structlog and the standard library's logging; ``form`` is auto, json or text."""
    is_text = form == "text" or (form == "auto" and sys.stderr.isatty())
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, put_first, _renderer(is_text)],
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
                structlog.processors.format_exc_info,
                put_first,
                _renderer(is_text),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(number, logging.WARNING))


_FIRST = ("ts", "level", "event")


def put_first(logger: Any, method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    """A processor that puts what every message has in front, where people look for it."""
    return {name: event.pop(name) for name in _FIRST if name in event} | dict(event)


def _renderer(is_text: bool) -> Any:
    if is_text:
        return structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(),
            timestamp_key="ts",
            exception_formatter=structlog.dev.plain_traceback,
        )
    return structlog.processors.JSONRenderer()
