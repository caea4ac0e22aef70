"""A snapshot of the running server's figures for `/metrics`, taken on the event loop in slices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from cli.serve.figures.group_figures import AllGroups, take_groups
from cli.serve.figures.metric_families import HistogramFigures, copy_histogram, copy_histograms
from cli.serve.figures.upstream_figures import UpstreamFigures
from cli.serve.traces.traces import TraceFigures
from coordinator.runtime.loop.slices import Steps
from coordinator.runtime.loop.stats import Histogram
from coordinator.runtime.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Waits:
    """What waits, and for whom: figures of the moment, and of what has ended."""

    parked_heartbeats: int
    waiting_members: int
    sessions: int
    unsettled_groups: Mapping[str, int]
    """Groups that rebalance, by type."""
    unsettled_s: Mapping[str, float]
    """For how long the first of them does, by type; without a type that has none."""
    rebalance_seconds: Mapping[str, HistogramFigures]
    queue_seconds: Mapping[str, HistogramFigures]
    request_seconds: Mapping[str, HistogramFigures]
    call_seconds: Mapping[str, HistogramFigures]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The server at one moment. ``counters`` are the plain counters of ``Stats``."""

    # More than 15 attributes: one attribute is one metric or family of metrics.

    is_ready: bool
    groups: AllGroups
    topics: int
    partitions: int
    kafka_connections: int
    kafka_refusals: Mapping[str, int]
    waits: Waits
    throttled_s: Mapping[str, float]
    certificates_not_after: Mapping[str, float]
    counters: Mapping[str, float]
    commands: Mapping[str, int]
    errors: Mapping[str, int]
    members_expired: Mapping[str, int]
    rebalance_causes: Mapping[str, int]
    classic_rebalance_causes: Mapping[str, int]
    translated_requests: Mapping[str, int]
    invariant_violations: Mapping[str, int]
    assignor_failures: Mapping[str, int]
    flush_seconds: HistogramFigures
    write_seconds: HistogramFigures
    assignor_seconds: HistogramFigures
    loop_lag_seconds: HistogramFigures
    collection_seconds: HistogramFigures
    audit_lines: Mapping[str, int]
    audit_left_out: Mapping[str, int]
    upstream: UpstreamFigures | None = None
    """``None`` unless the server stands in front of a cluster."""
    traces: TraceFigures | None = None
    """``None`` unless requests are traced."""


_PLAIN_COUNTERS = (
    "targets_installed",
    "offsets_committed",
    "offsets_expired",
    "groups_expired",
    "transactions_timed_out",
    "checkpoints",
    "unsettled_keys",
    "history_bytes",
    "history_age_ms",
    "history_trimmed_bytes",
    "history_partitions_left",
    "records_written",
    "bytes_written",
    "flushes",
    "writes_refused",
    "invariant_checks",
    "log_partitions_stopped",
    "stalled_ms",
    "load_seconds",
    "records_loaded",
)


class KafkaFigures(Protocol):
    """The Kafka listener's figures about its connections and their requests."""

    @property
    def connections(self) -> int: ...

    @property
    def refusals(self) -> dict[str, int]: ...

    @property
    def request_seconds(self) -> Mapping[str, Histogram]: ...

    def count_parked(self) -> int: ...


class GrpcFigures(Protocol):
    """The gRPC listener's figures about its sessions and calls."""

    @property
    def sessions(self) -> int: ...

    @property
    def call_seconds(self) -> Mapping[str, Histogram]: ...


class AuditFigures(Protocol):
    """The audit log's figures: lines by kind, and those that were left out."""

    @property
    def lines(self) -> Mapping[str, int]: ...

    def left_out(self) -> Mapping[str, int]: ...


def take_snapshot(
    runtime: Runtime,
    *,
    loop_lag: Histogram,
    collections: Histogram,
    kafka: KafkaFigures,
    grpc: GrpcFigures,
    throttled_s: Mapping[str, float],
    certificates_not_after: Mapping[str, float],
    is_ready: bool,
    audit: AuditFigures | None = None,
    upstream: UpstreamFigures | None = None,
    traces: TraceFigures | None = None,
) -> Steps[Snapshot]:
    """Copy what the metrics need."""
    groups = yield from take_groups(runtime.shards)
    waits = _compute_waits(runtime, kafka, grpc)
    yield
    stats, image = runtime.stats, runtime.image
    return Snapshot(
        is_ready=is_ready,
        groups=groups,
        topics=len(image.by_name),
        partitions=sum(topic.partitions for topic in image.by_name.values()),
        kafka_connections=kafka.connections,
        kafka_refusals=kafka.refusals,
        waits=waits,
        throttled_s={"kafka": 0.0, "grpc": 0.0, **throttled_s},
        certificates_not_after=certificates_not_after,
        counters={name: getattr(stats, name) for name in _PLAIN_COUNTERS},
        commands=dict(stats.commands),
        errors=dict(stats.errors),
        members_expired=dict(stats.members_expired),
        rebalance_causes=dict(stats.rebalance_causes),
        classic_rebalance_causes=dict(stats.classic_rebalance_causes),
        translated_requests=dict(stats.translated_requests),
        invariant_violations=dict(stats.invariant_violations),
        assignor_failures=dict(stats.assignor_failures_by_reason),
        flush_seconds=copy_histogram(stats.flush_seconds),
        write_seconds=copy_histogram(stats.write_seconds),
        assignor_seconds=copy_histogram(stats.assignor_seconds),
        loop_lag_seconds=copy_histogram(loop_lag),
        collection_seconds=copy_histogram(collections),
        audit_lines={} if audit is None else dict(audit.lines),
        audit_left_out={} if audit is None else audit.left_out(),
        upstream=upstream,
        traces=traces,
    )


def _compute_waits(runtime: Runtime, kafka: KafkaFigures, grpc: GrpcFigures) -> Waits:
    stats = runtime.stats
    unsettled = {"consumer": 0, "classic": 0}
    longest_ms: dict[str, int] = {}
    for is_classic, age_ms in runtime.find_rebalance_ages_ms():
        kind = "classic" if is_classic else "consumer"
        unsettled[kind] += 1
        longest_ms[kind] = max(longest_ms.get(kind, 0), age_ms)
    return Waits(
        kafka.count_parked(),
        runtime.waiting_members,
        grpc.sessions,
        unsettled,
        {kind: age_ms / 1_000 for kind, age_ms in longest_ms.items()},
        copy_histograms(stats.rebalance_seconds),
        copy_histograms(stats.queue_seconds),
        copy_histograms(kafka.request_seconds),
        copy_histograms(grpc.call_seconds),
    )
