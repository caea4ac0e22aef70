"""Trips of a server in the process, as the spans that OpenTelemetry's exporter gets."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from cli.serve.traces.spans import SpanExport
from cli.serve.traces.trace_export import TraceExport
from coordinator.runtime.trips.trip import Sync, Trip
from coordinator.runtime.trips.trips import Trips
from tests.support.waiting import until


class Traced:
    """Follows requests; ``spans`` makes spans of all that has ended so far."""

    def __init__(self, one_in: int = 1) -> None:
        self.ended: list[Trip | Sync] = []
        self.trips = Trips(self.ended.append, one_in, Random(7))

    def forget(self) -> None:
        self.ended.clear()

    def find_trips(self) -> list[Trip]:
        return [traced for traced in self.ended if isinstance(traced, Trip)]

    async def until(self, count: int) -> None:
        """So many requests have ended: a client has its answer before the server notes that."""
        await until(lambda: len(self.find_trips()) >= count, lambda: self.ended)

    def spans(self) -> list[ReadableSpan]:
        exporter = InMemorySpanExporter()
        export = TraceExport(SpanExport(exporter, "1", "i"), 1_000)
        for traced in self.ended:
            export.add(traced)
        export.start()
        export.stop(30.0)
        assert export.dropped == {"queue_full": 0, "not_taken": 0, "stopped": 0}
        return list(exporter.get_finished_spans())


def children_of(parent: ReadableSpan, spans: list[ReadableSpan]) -> list[ReadableSpan]:
    """In the order of their beginnings."""
    found = [span for span in spans if span.parent is not None and _is(span, parent)]
    return sorted(found, key=lambda span: (time_of(span)[0], time_of(span)[1]))


def _is(span: ReadableSpan, parent: ReadableSpan) -> bool:
    assert span.parent is not None
    return span.parent.span_id == parent.context.span_id


def time_of(span: ReadableSpan) -> tuple[int, int]:
    assert span.start_time is not None
    assert span.end_time is not None
    return span.start_time, span.end_time


def only(found: Callable[[ReadableSpan], bool], spans: list[ReadableSpan]) -> ReadableSpan:
    """The one span of which that is so."""
    (span,) = filter(found, spans)
    return span
