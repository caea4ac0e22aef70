"""The audit log of a server: takes what happened on the event loop, writes it on a thread."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import structlog

from cli.errors import CommandError, ExitCode
from cli.serve.audit.audit_lines import clip, encode_line
from cli.serve.audit.gathering import Gathering, Line, Repeated
from cli.serve.audit.sinks import FileSink, Sink, StdoutSink
from cli.settings import Resolved
from coordinator.runtime.audit import Change
from model.access.acls import Operation, ResourceType
from model.caller import Caller

log = structlog.get_logger("muster.audit")

REFUSED: Final = "authorization_refused"
NOT_AUTHENTICATED: Final = "authentication_failed"
CHANGED: Final = "changed"
STDOUT: Final = "stdout"

RETRY_S: Final = 1.0
"""How long after a failed write the next one is tried."""
CLOSE_S: Final = 2.0
"""How long a stop waits for the last lines."""

_GROUPS_MAX: Final = 20
_CALLER: Final = ("principal", "groups", "client_id", "host", "listener")
_RESOURCE: Final = ("operation", "resource_type", "resource_name")
_FAILED: Final = ("host", "listener", "mechanism", "reason")


class AuditLog:
    """Implements ``coordinator.runtime.audit.Audit``, from any thread; none of it blocks.

    Times are wall times: people compare them with those of other logs.
    """

    def __init__(self, sink: Sink, rate_max: int, time_s: Callable[[], float] = time.time) -> None:
        self._sink = sink
        self._time_s = time_s
        self._gathering = Gathering(rate_max)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._has_to_reopen = False
        self._is_closing = False
        self._is_failing = False
        self._thread: threading.Thread | None = None
        self.lines: Counter[str] = Counter()
        """Lines that were written since the start, by kind."""

    # -------------------------------------------------------------------------------- what happened

    def refused(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, name: str
    ) -> None:
        """See ``Audit``."""
        values = (*_describe(caller), operation.value, resource_type.value, clip(name))
        self._hold(Repeated(REFUSED, (*_CALLER, *_RESOURCE), values))

    def not_authenticated(self, host: str, listener: str, mechanism: str, reason: str) -> None:
        """See ``Audit``."""
        values = (_strip(host), listener, clip(mechanism), clip(reason))
        self._hold(Repeated(NOT_AUTHENTICATED, _FAILED, values))

    def changed(self, caller: Caller, change: Change) -> None:
        """See ``Audit``."""
        now_s = self._time_s()
        fields: dict[str, object] = dict(zip(_CALLER, _describe(caller), strict=True))
        fields |= {
            "change": change.kind,
            "operation": change.operation,
            "resource_type": change.resource_type,
            "resource_name": change.resource_name,
            "before": change.before,
            "after": change.after,
        }
        text = encode_line(now_s, CHANGED, fields)
        with self._lock:
            self._gathering.add(now_s, change.kind, text)
        self._wake.set()

    def _hold(self, event: Repeated) -> None:
        with self._lock:
            is_first = self._gathering.hold(self._time_s(), event)
        if is_first:
            self._wake.set()

    def left_out(self) -> dict[str, int]:
        """The number of lines that were left out since the start, by kind."""
        with self._lock:
            return dict(self._gathering.left_out)

    # -------------------------------------------------------------------------------------- writing

    def start(self) -> None:
        """Open the log, and write from now on. Raises ``CommandError``."""
        try:
            self._sink.open()
        except OSError as error:
            reason = f"{error.filename}: {error.strerror}"
            raise CommandError(f"audit.log cannot be written: {reason}") from error
        self._thread = threading.Thread(target=self._run, name="audit", daemon=True)
        self._thread.start()

    def reopen(self) -> None:
        """Open the file anew under its name: another program has moved it away."""
        self._has_to_reopen = True
        self._wake.set()

    def close(self) -> None:
        """Write what is left, for at most ``CLOSE_S`` seconds."""
        self._is_closing = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while not self._is_closing:
            self._wake.wait(self._compute_wait_s())
            self._wake.clear()
            try:
                is_written = self.write_due()
            except Exception:
                log.exception("audit_log_failed")
                is_written = False
            if not is_written:
                self._sleep(RETRY_S)
        self.write_due()
        with self._lock:
            self._gathering.drop_waiting()
        self._sink.close()

    def _sleep(self, seconds: float) -> None:
        """Wait, unless the log is to be closed or opened anew."""
        until = time.monotonic() + seconds
        while not (self._is_closing or self._has_to_reopen):
            left = until - time.monotonic()
            if left <= 0:
                return
            self._wake.wait(left)
            self._wake.clear()

    def _compute_wait_s(self) -> float | None:
        with self._lock:
            return self._gathering.compute_wait_s(self._time_s())

    def write_due(self) -> bool:
        """Write the lines that are due; ``False`` if that failed, and they wait."""
        with self._lock:
            lines = self._gathering.take(self._time_s(), is_end=self._is_closing)
        count = 0
        try:
            self._open_anew()
            if lines:
                self._sink.look()
            for line in lines:
                self._sink.write(line.text)
                count += 1
        except OSError as error:
            self._note_failure(error)
        with self._lock:
            self._gathering.written(count)
        self._count(lines[:count])
        if count < len(lines):
            return False
        if self._is_failing and lines:
            self._is_failing = False
            log.warning("audit_log_is_back")
        return True

    def _open_anew(self) -> None:
        if self._has_to_reopen:
            self._has_to_reopen = False
            self._sink.close()
            self._sink.open()

    def _count(self, lines: list[Line]) -> None:
        for line in lines:
            self.lines[line.kind] += 1

    def _note_failure(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            log.error("audit_log_failed", cause=error.strerror or str(error))


def make_audit_log(resolved: Resolved) -> AuditLog | None:
    """The audit log that the settings ask for, not yet open; ``None`` for none."""
    place = resolved.values["audit.log"]
    if place is None:
        return None
    sink: Sink = StdoutSink()
    if place != STDOUT:
        path = Path(str(place)).absolute()
        if path.is_dir():
            raise CommandError(f"audit.log ({path}) is a folder: name a file", ExitCode.USAGE)
        sink = FileSink(path, resolved.integer("audit.log.max.bytes"))
    return AuditLog(sink, resolved.integer("audit.rate.max"))


def _describe(caller: Caller) -> tuple[object, ...]:
    groups = tuple(map(clip, caller.groups[:_GROUPS_MAX]))
    return (
        clip(caller.principal),
        groups,
        clip(caller.client_id),
        _strip(caller.client_host),
        caller.listener,
    )


def _strip(host: str) -> str:
    """The address, without the slash that Java prints before it."""
    return clip(host.removeprefix("/"))
