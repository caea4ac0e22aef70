"""How far a job of minutes is, on standard error: one way for all commands.

A terminal has one line, which is written anew each second. A file or a pipe gets a line every ten
seconds, none of a job that ends before. With ``--quiet`` neither gets any.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from threading import Event, RLock, Thread
from types import TracebackType
from typing import Self, TextIO

from cli.output import make_printable, print_note

_TERMINAL_INTERVAL_S = 1.0
_FILE_INTERVAL_S = 10.0
_ERASE = "\r\x1b[K"

Measure = Callable[[], str]
"""Says how far a step is, such as ``12 of 50 partitions``; empty if it cannot."""


def compute_share(done: int, total: int, what: str) -> str:
    """How far a step is that has ``total`` of something to do."""
    return f"{done:,} of {total:,} {what} ({100 * min(done, total) // max(1, total)}%)"


def compute_line(elapsed_s: float, step: str, how_far: str) -> str:
    """The line of a job at work."""
    return f"{elapsed_s:6.1f} s  {step}" + (f": {how_far}" if how_far else " …")


class Progress:
    """Tells of a job while its ``with`` block runs; what is left of it on a terminal is removed.

    Setting a step or a count costs nothing: a thread of its own looks at them and writes.
    """

    def __init__(
        self,
        *,
        is_quiet: bool,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_quiet = is_quiet
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._started = clock()
        self._written = self._started
        self._is_terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._is_shown = False
        self._step = ""
        self._measure: Measure | None = None
        self._lock = RLock()
        self._ended = Event()
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        if not self._is_quiet:
            self._thread = Thread(target=self._run, daemon=True, name="progress")
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        self._erase()

    def begin(self, step: str, measure: Measure | None = None) -> None:
        """What is done next; ``measure`` is asked from another thread how far it is."""
        with self._lock:
            self._step, self._measure = step, measure

    def count(self, done: int, total: int, what: str) -> None:
        """How far the step is."""
        with self._lock:
            self._measure = lambda: compute_share(done, total, what)

    def tell(self, name: str, rows: int) -> None:
        """Print that a table is finished."""
        self.say(f"{self._clock() - self._started:6.1f} s  {name}: {rows} rows")

    def say(self, text: str) -> None:
        """Print a line that stays."""
        if not self._is_quiet:
            self.warn(text)

    def warn(self, text: str) -> None:
        """Print a line that must be seen, also if quiet."""
        with self._lock:
            self._erase()
            print_note(text)

    def look(self) -> None:
        """Write how far the job is, if it is time to."""
        with self._lock:
            now = self._clock()
            interval_s = _TERMINAL_INTERVAL_S if self._is_terminal else _FILE_INTERVAL_S
            if self._is_quiet or not self._step or now - self._written < interval_s:
                return
            self._written = now
            how_far = "" if self._measure is None else self._measure()
            line = make_printable(compute_line(now - self._started, self._step, how_far))
            if self._is_terminal:
                width = shutil.get_terminal_size().columns - 1
                print(_ERASE + line[:width], end="", file=self._stream, flush=True)
                self._is_shown = True
            else:
                print(line, file=self._stream, flush=True)

    def _erase(self) -> None:
        if self._is_shown:
            self._is_shown = False
            print(_ERASE, end="", file=self._stream, flush=True)

    def _run(self) -> None:
        while not self._ended.wait(_TERMINAL_INTERVAL_S):
            self.look()
