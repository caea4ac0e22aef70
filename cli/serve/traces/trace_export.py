"""Hands what was traced to an exporter, on a thread of its own.

The event loop only appends to a bounded queue. A collector that hangs, or refuses, holds up that
thread and nobody else; what does not fit into the queue meanwhile is dropped, and counted.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

import structlog

from coordinator.runtime.trips.trip import Sync, Trip

log = structlog.get_logger("muster.traces")

INTERVAL_S: Final = 0.5
"""How often the queue is looked at."""
BATCH: Final = 256
"""So many are exported in one call; a trip has up to ten spans."""
_COMPLAINT_S: Final = 60.0
END_S: Final = 0.5
"""How long the last export may take to notice that it was given up."""


class Exporter(Protocol):
    """Sends to a collector; called on one thread."""

    def export(self, batch: Sequence[Trip | Sync]) -> bool:
        """Send; ``False`` if the collector did not take it. It may block, and raise."""

    def close(self) -> None:
        """Give up what is being sent; called on another thread, and must not block."""


class TraceExport:
    """The queue and its thread. ``add`` is called on the event loop."""

    def __init__(
        self, exporter: Exporter, queue_max: int, *, interval_s: float = INTERVAL_S
    ) -> None:
        self._exporter = exporter
        self._queue_max = queue_max
        self._interval_s = interval_s
        self._queue: deque[Trip | Sync] = deque()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="muster-traces", daemon=True)
        self._complained_at = float("-inf")
        self.exported = 0
        """Requests and syncs of the log that a collector has taken."""
        self.dropped = {"queue_full": 0, "not_taken": 0, "stopped": 0}
        """Those that none has, by reason."""

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def add(self, traced: Trip | Sync) -> None:
        """Queue, or drop if the queue is full. Never blocks."""
        if len(self._queue) >= self._queue_max:
            self.dropped["queue_full"] += 1
        else:
            self._queue.append(traced)

    def stop(self, grace_s: float) -> None:
        """Export what is queued, for ``grace_s`` seconds at most, and little more; blocks."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(grace_s)
        self._exporter.close()
        if self._thread.is_alive():
            self._thread.join(END_S)
        self.dropped["stopped"] += len(self._queue)

    def _run(self) -> None:
        while not self._stopping.wait(self._interval_s):
            self._export_queued()
        self._export_queued()

    def _export_queued(self) -> None:
        """Export what is queued now; while stopping, until a collector takes no more."""
        while self._queue:
            count = min(len(self._queue), BATCH)
            batch = [self._queue.popleft() for _ in range(count)]
            if self._send(batch):
                self.exported += count
            else:
                self.dropped["not_taken"] += count
                if self._stopping.is_set():
                    return

    def _send(self, batch: Sequence[Trip | Sync]) -> bool:
        try:
            is_taken = self._exporter.export(batch)
            cause = "" if is_taken else "the collector did not take them"
        except Exception as error:  # noqa: BLE001 - what a collector or its library does wrong
            is_taken, cause = False, repr(error)
        if not is_taken and time.monotonic() >= self._complained_at + _COMPLAINT_S:
            self._complained_at = time.monotonic()
            log.warning("traces_dropped", count=len(batch), cause=cause)
        return is_taken
