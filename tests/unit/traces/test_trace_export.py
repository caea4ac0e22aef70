"""Exports that hang, fail and are given up; none of it reaches the event loop."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

from cli.serve.traces.spans import SpanExport, make_otlp_exporter
from cli.serve.traces.trace_export import TraceExport
from coordinator.runtime.trips.trip import Sync, Trip
from tests.support.gateway.wire_rig import run_rig
from tests.support.gateway.wire_steps import UNPARKED
from tests.support.traced import Traced
from tests.support.waiting import wait_until
from tests.unit.traces.test_kafka_traces import commit

WAIT_S = 30.0
OFTEN_S = 0.01


class Hanging:
    """Takes nothing until it is given up, and not even then if it is ``stubborn``."""

    def __init__(self, *, stubborn: bool = False) -> None:
        self.asked = threading.Event()
        self.released = threading.Event()
        self._stubborn = stubborn

    def export(self, batch: Sequence[Trip | Sync]) -> bool:
        self.asked.set()
        self.released.wait(WAIT_S)
        return False

    def close(self) -> None:
        if not self._stubborn:
            self.released.set()


class Failing:
    """Raises once, then takes all."""

    def __init__(self) -> None:
        self.taken = 0

    def export(self, batch: Sequence[Trip | Sync]) -> bool:
        if not self.taken:
            self.taken = 1
            raise RuntimeError("a bug of a library")
        self.taken += len(batch)
        return True

    def close(self) -> None:
        """Nothing is sent."""


def make_trips(count: int) -> list[Trip]:
    trips = Traced().trips
    made = [trips.begin() for _ in range(count)]
    return [trip for trip in made if trip is not None]


async def test_a_server_serves_while_its_collector_hangs() -> None:
    traced, hanging = Traced(), Hanging()
    export = TraceExport(hanging, queue_max=4, interval_s=OFTEN_S)
    traced.trips._sink = export.add
    export.start()
    async with run_rig(UNPARKED, trips=traced.trips) as rig, await rig.connect() as client:
        await rig.create_topic("t", 1)
        await commit(client, 0)
        assert hanging.asked.wait(WAIT_S)
        for offset in range(20):
            await commit(client, offset)
    assert export.dropped["queue_full"] > 0
    export.stop(0.05)
    assert not export._thread.is_alive()
    assert export.exported == 0
    assert sum(export.dropped.values()) >= 21


def test_a_stop_waits_for_no_exporter_for_long() -> None:
    stubborn = Hanging(stubborn=True)
    export = TraceExport(stubborn, queue_max=4, interval_s=OFTEN_S)
    for trip in make_trips(2):
        export.add(trip)
    export.start()
    assert stubborn.asked.wait(WAIT_S)
    began = time.monotonic()
    export.stop(0.05)
    assert time.monotonic() - began < WAIT_S / 2, "it waited for the export to end"
    assert export._thread.daemon, "a process ends without it"
    stubborn.released.set()


def test_an_export_that_fails_is_no_end_of_exports() -> None:
    failing = Failing()
    export = TraceExport(failing, queue_max=1_000, interval_s=OFTEN_S)
    export.start()
    first, second = make_trips(2)
    export.add(first)
    wait_until(lambda: export.dropped["not_taken"] == 1)
    export.add(second)
    wait_until(lambda: export.exported == 1)
    export.stop(WAIT_S)
    assert export.dropped == {"queue_full": 0, "not_taken": 1, "stopped": 0}


@pytest.mark.parametrize("accepts", [False, True])
def test_a_collector_that_refuses_or_says_nothing(accepts: bool) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        if accepts:
            listening.listen()
        port = listening.getsockname()[1]
        exporter = make_otlp_exporter(f"http://127.0.0.1:{port}", 60.0)
        spans = SpanExport(exporter, "1", "i")
        export = TraceExport(spans, queue_max=10, interval_s=OFTEN_S)
        for trip in make_trips(2):
            trip.times_ns[-1] = trip.times_ns[0]
            export.add(trip)
        export.start()
        wait_until(lambda: not export._queue)
        began = time.monotonic()
        export.stop(0.05)
        assert time.monotonic() - began < WAIT_S / 2, "it waited for the collector"
        wait_until(lambda: not export._thread.is_alive())
    assert export.dropped["not_taken"] == 2


class Collector:
    """A server of OTLP's traces; keeps the names of the spans that it is sent."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._server = grpc.server(ThreadPoolExecutor(1))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    def __enter__(self) -> Collector:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None).wait(WAIT_S)

    def Export(self, request: Any, _: object) -> Any:
        resources = request.resource_spans
        self.names += [
            span.name for each in resources for scope in each.scope_spans for span in scope.spans
        ]
        return trace_service_pb2.ExportTraceServiceResponse()


def test_spans_reach_a_collector_before_the_server_ends() -> None:
    with Collector() as collector:
        exporter = make_otlp_exporter(f"http://127.0.0.1:{collector.port}", WAIT_S)
        export = TraceExport(SpanExport(exporter, "1", "i"), queue_max=10)
        export.start()
        (trip,) = make_trips(1)
        trip.name = "OffsetCommit"
        trip.times_ns[-1] = trip.times_ns[0]
        export.add(trip)
        export.stop(WAIT_S)
    assert "OffsetCommit" in collector.names
    assert export.exported == 1
