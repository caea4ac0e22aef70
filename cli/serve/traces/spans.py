"""Makes OpenTelemetry's spans of trips, and sends them by OTLP over gRPC.

A span is made after it has ended, with the ids and times that were noted on the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from cli.serve.traces.span_names import (
    REQUESTS,
    SERVICE,
    SYNC,
    compute_attributes,
    compute_name,
    compute_steps,
    has_failed,
)
from coordinator.runtime.trips.trip import SpanId, Stage, Sync, Trip


def make_otlp_exporter(endpoint: str, timeout_s: float) -> SpanExporter:
    """An exporter to a collector; headers and certificates are OpenTelemetry's variables."""
    # It would log each failure; ``TraceExport`` does, once in a while.
    logging.getLogger("opentelemetry.exporter.otlp").setLevel(logging.CRITICAL)
    return OTLPSpanExporter(endpoint=endpoint, timeout=timeout_s)


class SpanExport:
    """Implements ``cli.serve.traces.trace_export.Exporter``."""

    def __init__(self, exporter: SpanExporter, version: str, instance: str) -> None:
        self._exporter = exporter
        self._ids = _GivenIds()
        self._ended = _Ended()
        resource = Resource.create(
            {"service.name": SERVICE, "service.version": version, "service.instance.id": instance}
        )
        provider = TracerProvider(
            sampler=ALWAYS_ON, resource=resource, id_generator=self._ids, shutdown_on_exit=False
        )
        provider.add_span_processor(self._ended)
        self._tracer = provider.get_tracer(SERVICE, version)

    def export(self, batch: Sequence[Trip | Sync]) -> bool:
        """See ``Exporter``."""
        for traced in batch:
            if isinstance(traced, Trip):
                self._make_trip(traced)
            else:
                self._make_sync(traced)
        spans, self._ended.spans = self._ended.spans, []
        return self._exporter.export(spans) is SpanExportResult.SUCCESS

    def close(self) -> None:
        """See ``Exporter``."""
        self._exporter.shutdown()

    def _make_trip(self, trip: Trip) -> None:
        received_ns = trip.times_ns[Stage.RECEIVED]
        to_wall_ns = trip.wall_ns - received_ns
        self._ids.give(trip.span)
        span = self._tracer.start_span(
            compute_name(trip),
            context=_compute_context(trip.parent, is_remote=True),
            kind=SpanKind.SERVER,
            attributes=compute_attributes(trip),
            start_time=trip.wall_ns,
        )
        if has_failed(trip):
            span.set_status(Status(StatusCode.ERROR))
        within = _compute_context(trip.span, is_remote=False)
        for name, begin_ns, end_ns in compute_steps(trip):
            links = [Link(_compute_ids(trip.sync.span))] if trip.sync and name == "flush" else []
            step = self._tracer.start_span(
                name, context=within, links=links, start_time=begin_ns + to_wall_ns
            )
            step.end(end_ns + to_wall_ns)
        span.end(trip.times_ns[Stage.ANSWERED] + to_wall_ns)

    def _make_sync(self, sync: Sync) -> None:
        self._ids.give(sync.span)
        span = self._tracer.start_span(
            SYNC,
            context=Context(),
            links=[Link(_compute_ids(covered)) for covered in sync.covers],
            attributes={REQUESTS: sync.requests},
            start_time=sync.wall_ns,
        )
        span.end(sync.wall_ns + sync.ended_ns - sync.began_ns)


class _GivenIds(IdGenerator):
    """The ids that a request already has, once; else new ones."""

    def __init__(self) -> None:
        self._given: SpanId | None = None
        self._new = RandomIdGenerator()

    def give(self, ids: SpanId) -> None:
        """Use these ids for the span that is made next."""
        self._given = ids

    def generate_span_id(self) -> int:
        given, self._given = self._given, None
        return self._new.generate_span_id() if given is None else given.span

    def generate_trace_id(self) -> int:
        assert self._given is not None, "only spans with ids of their own begin a trace"
        return self._given.trace


class _Ended(SpanProcessor):
    """Keeps the spans that have ended."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def _compute_ids(ids: SpanId, *, is_remote: bool = False) -> SpanContext:
    return SpanContext(ids.trace, ids.span, is_remote, TraceFlags(TraceFlags.SAMPLED))


def _compute_context(parent: SpanId | None, *, is_remote: bool) -> Context:
    if parent is None:
        return Context()
    span = NonRecordingSpan(_compute_ids(parent, is_remote=is_remote))
    return set_span_in_context(span, Context())
