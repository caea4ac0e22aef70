"""What the settings ask to be traced, if anything."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from random import Random
from typing import Final, NamedTuple

from cli.errors import CommandError
from cli.serve.traces.trace_export import END_S, TraceExport
from cli.settings import Resolved
from cli.settings.tables.traces_table import ENDPOINT, ONE_IN, QUEUE_MAX
from cli.version import compute_version
from coordinator.runtime.trips.trips import Trips

EXPORT_TIMEOUT_S: Final = 5.0
"""How long a collector may take for one batch."""
_LEAST_S: Final = 0.1
"""So long the last export may take even if clients took all the time that stopping may take."""


class TraceFigures(NamedTuple):
    """Counts for `/metrics`: what was exported, and what was dropped by reason."""

    exported: int
    dropped: Mapping[str, int]


class Traces:
    """The trips of a server and their export; both ``None`` if nothing is traced."""

    def __init__(self, export: TraceExport | None = None, trips: Trips | None = None) -> None:
        self._export = export
        self.trips = trips

    def start(self) -> None:
        """Start the thread that exports, if there is to be one."""
        if self._export is not None:
            self._export.start()

    def stop(self, ends_at: float) -> None:
        """Export what is left until ``ends_at`` (monotonic seconds); blocks."""
        if self._export is not None:
            self._export.stop(max(ends_at - END_S - time.monotonic(), _LEAST_S))

    def compute_figures(self) -> TraceFigures | None:
        """The counts; ``None`` if nothing is traced."""
        export = self._export
        return None if export is None else TraceFigures(export.exported, dict(export.dropped))


def make_traces(resolved: Resolved) -> Traces:
    """What the settings ask for. Raises ``CommandError`` if OpenTelemetry is not installed."""
    endpoint = resolved.values[ENDPOINT]
    if endpoint is None:
        return Traces()
    try:
        # Imported only here: most servers have no need of it, and many do not have it.
        from cli.serve.traces.spans import SpanExport, make_otlp_exporter
    except ImportError as error:
        raise CommandError(
            f"{ENDPOINT} needs OpenTelemetry: install muster-server[traces], or unset it"
        ) from error
    exporter = make_otlp_exporter(str(endpoint), EXPORT_TIMEOUT_S)
    spans = SpanExport(exporter, compute_version(), str(uuid.uuid4()))
    export = TraceExport(spans, resolved.integer(QUEUE_MAX))
    return Traces(export, Trips(export.add, resolved.integer(ONE_IN), Random()))
