"""Log messages: a repeated traceback is only logged periodically."""

from __future__ import annotations

import io
import logging
from typing import Any

import pytest
import structlog

from cli.serve.logs import FewTracebacks, configure_logging


class Clock:
    now = 100.0

    def time(self) -> float:
        return self.now


def make(name: str, error: Exception) -> dict[str, Any]:
    return {"event": name, "exc_info": error}


def test_the_same_traceback_is_shown_once_a_second() -> None:
    clock = Clock()
    few = FewTracebacks(clock.time)
    first = few(None, "error", make("handler_failed api=Fetch", ValueError("a")))
    assert "exc_info" in first
    for number in range(5):
        event = few(None, "error", make("handler_failed api=Fetch", ValueError(f"b{number}")))
        assert "exc_info" not in event
        assert event["cause"] == f"ValueError: b{number}", "the line itself stays"
    assert "exc_info" in few(None, "error", make("handler_failed", KeyError("k"))), "another"
    assert "exc_info" in few(None, "error", make("reading_failed", ValueError("a")))
    clock.now += 1.1
    again = few(None, "error", make("handler_failed api=Fetch", ValueError("c")))
    assert "exc_info" in again
    assert again["tracebacks_left_out"] == 5


def test_messages_without_one_are_left_alone_and_little_is_kept() -> None:
    few = FewTracebacks(Clock().time)
    plain = {"event": "started", "exc_info": None}
    assert few(None, "info", dict(plain)) == plain
    for number in range(5_000):
        few(None, "error", make(f"e{number}", ValueError()))
    assert len(few._next) <= 1_000


def test_a_header_that_is_no_text_is_not_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    root, library = logging.getLogger(), logging.getLogger("grpc._cython.cygrpc")
    for logger, name in ((root, "handlers"), (library, "filters")):
        monkeypatch.setattr(logger, name, [])
    monkeypatch.setattr(structlog, "configure", lambda **rest: None)
    level = root.level
    try:
        configure_logging("json", "info")
    finally:
        root.setLevel(level)
    written = io.StringIO()
    monkeypatch.setattr(root.handlers[0], "stream", written)
    library.error("Invalid encoding on %s", b"Basic \xffplanted")
    library.error("something else")
    assert "planted" not in written.getvalue()
    assert "something else" in written.getvalue()
