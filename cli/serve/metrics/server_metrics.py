"""The metric families of a snapshot that do not grow with the groups."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from cli.serve.figures.metric_families import (
    make_counter,
    make_gauge,
    make_histogram,
    make_labelled,
)
from cli.serve.figures.snapshot import Snapshot
from cli.serve.figures.upstream_metrics import collect_upstream
from cli.serve.lag.lag_figures import LagFigures
from cli.serve.metrics.lag_metrics import collect_lag
from cli.serve.metrics.wait_metrics import collect_waits
from cli.serve.traces.traces import TraceFigures

FENCES = frozenset(
    {
        "FENCED_INSTANCE_ID",
        "FENCED_MEMBER_EPOCH",
        "ILLEGAL_GENERATION",
        "STALE_MEMBER_EPOCH",
        "UNKNOWN_MEMBER_ID",
    }
)
"""Errors that fence a member: its id, epoch or generation is no longer valid."""


class SnapshotCollector(Collector):
    """The metric families of one snapshot; ``omitted`` groups have no series of their own."""

    def __init__(
        self,
        snapshot: Snapshot,
        lag: LagFigures | None,
        *,
        version: str,
        omitted: int,
        folder_bytes: Mapping[str, int],
        free_bytes: int,
    ) -> None:
        self._snapshot = snapshot
        self._lag = lag
        self._version = version
        self._omitted = omitted
        self._folder_bytes = folder_bytes
        self._free_bytes = free_bytes

    def collect(self) -> Iterator[Metric]:
        yield from self._collect_server()
        yield from self._collect_groups()
        yield from self._collect_answers()
        yield from self._collect_certificates()
        yield from self._collect_audit()
        yield from self._collect_connections()
        yield from collect_waits(self._snapshot.waits)
        yield from self._collect_log()
        if self._lag is not None:
            yield from collect_lag(self._lag, time.monotonic())
        if self._snapshot.upstream is not None:
            yield from collect_upstream(self._snapshot.upstream)
        if self._snapshot.traces is not None:
            yield from _collect_traces(self._snapshot.traces)

    def _collect_server(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        info = GaugeMetricFamily("muster_build_info", "The version.", labels=["version"])
        info.add_metric([self._version], 1)
        yield info
        yield make_gauge(
            "muster_ready", "Whether the server serves commands.", int(snapshot.is_ready)
        )
        yield make_gauge("muster_topics", "Number of topics.", snapshot.topics)
        yield make_gauge(
            "muster_topic_partitions", "Partitions of all topics.", snapshot.partitions
        )
        yield make_histogram(
            "muster_loop_lag_seconds",
            "How late the event loop ran a timer.",
            snapshot.loop_lag_seconds,
        )
        yield make_histogram(
            "muster_garbage_collection_seconds",
            "Time of a garbage collection, in which the event loop stands still.",
            snapshot.collection_seconds,
        )
        yield make_counter(
            "muster_stalled_seconds",
            "Total time by which deadlines were extended because the server itself had stalled.",
            snapshot.counters["stalled_ms"] / 1000,
        )

    def _collect_groups(self) -> Iterator[Metric]:
        groups = self._snapshot.groups
        by_state = GaugeMetricFamily("muster_groups", "Groups.", labels=["type", "state"])
        for (group_type, state), count in sorted(groups.by_state.items()):
            by_state.add_metric([group_type, state], count)
        yield by_state
        yield make_gauge(
            "muster_groups_frozen",
            "Consumer groups whose rebalancing is frozen.",
            groups.frozen,
        )
        yield make_gauge(
            "muster_members",
            "Members of all groups.",
            sum(group.members for shard in groups.shards for group in shard),
        )
        yield make_gauge(
            "muster_members_unconverged",
            "Members that have not reached their group's target assignment.",
            sum(group.unconverged for shard in groups.shards for group in shard),
        )
        yield make_gauge(
            "muster_metrics_groups_omitted",
            "Groups without their own series (metrics.groups.max).",
            self._omitted,
        )

    def _collect_rebalances(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        rebalances = CounterMetricFamily(
            "muster_rebalances",
            "Rebalances that began, by type of group and cause.",
            labels=["type", "cause"],
        )
        causes = {
            "consumer": snapshot.rebalance_causes,
            "classic": snapshot.classic_rebalance_causes,
        }
        for group_type, counts in causes.items():
            for cause, count in sorted(counts.items()):
                rebalances.add_metric([group_type, cause], count)
        yield rebalances

    def _collect_answers(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        counters = snapshot.counters
        yield from self._collect_rebalances()
        yield make_counter(
            "muster_target_assignments",
            "Target assignments installed.",
            counters["targets_installed"],
        )
        yield make_histogram(
            "muster_assignor_seconds",
            "Time to compute a target assignment.",
            snapshot.assignor_seconds,
        )
        yield make_labelled(
            "muster_assignor_failures",
            "Target assignments that could not be computed.",
            "reason",
            snapshot.assignor_failures,
        )
        yield make_labelled("muster_commands", "Commands handled.", "command", snapshot.commands)
        yield make_labelled(
            "muster_translated_requests",
            "Requests of the classic protocol on consumer groups.",
            "command",
            snapshot.translated_requests,
        )
        yield make_labelled("muster_errors", "Error responses.", "error", snapshot.errors)
        yield make_labelled(
            "muster_fences",
            "Error responses that fence a member: its id or epoch is no longer valid.",
            "error",
            {name: count for name, count in snapshot.errors.items() if name in FENCES},
        )
        yield make_labelled(
            "muster_members_expired",
            "Members removed because a timeout expired.",
            "deadline",
            snapshot.members_expired,
        )
        yield make_counter(
            "muster_offsets_committed", "Offsets committed.", counters["offsets_committed"]
        )
        yield make_counter(
            "muster_offsets_expired",
            "Offsets deleted after their retention time.",
            counters["offsets_expired"],
        )
        yield make_counter(
            "muster_groups_expired",
            "Groups deleted because they were empty and had no offsets.",
            counters["groups_expired"],
        )
        yield make_counter(
            "muster_transactions_timed_out",
            "Transactions aborted by their timeout.",
            counters["transactions_timed_out"],
        )

    def _collect_connections(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        yield make_gauge(
            "muster_kafka_connections",
            "Open Kafka connections.",
            snapshot.kafka_connections,
        )
        yield make_labelled(
            "muster_kafka_connections_refused",
            "Kafka connections refused, or closed because of what they sent.",
            "reason",
            snapshot.kafka_refusals,
        )
        yield make_labelled(
            "muster_throttled_seconds",
            "Total time for which quotas throttled.",
            "door",
            snapshot.throttled_s,
        )

    def _collect_certificates(self) -> Iterator[Metric]:
        not_after = GaugeMetricFamily(
            "muster_tls_certificate_not_after_seconds",
            "When the certificate of a listener expires, in seconds since 1970.",
            labels=["listener"],
        )
        for listener, seconds in sorted(self._snapshot.certificates_not_after.items()):
            not_after.add_metric([listener], seconds)
        yield not_after

    def _collect_audit(self) -> Iterator[Metric]:
        yield make_labelled(
            "muster_audit_lines",
            "Lines written to the audit log.",
            "kind",
            self._snapshot.audit_lines,
        )
        yield make_labelled(
            "muster_audit_lines_left_out",
            "Lines left out of the audit log: too many a second, or they could not be written.",
            "kind",
            self._snapshot.audit_left_out,
        )

    def _collect_invariants(self) -> Iterator[Metric]:
        counters = self._snapshot.counters
        yield make_counter(
            "muster_invariant_checks",
            "Commands whose records were checked against the invariants of groups.",
            counters["invariant_checks"],
        )
        yield make_labelled(
            "muster_invariant_violations",
            "Commands that would have violated an invariant; each stopped a log partition.",
            "invariant",
            self._snapshot.invariant_violations,
        )
        yield make_gauge(
            "muster_log_partitions_stopped",
            "Log partitions that take no commands until the server is restarted.",
            counters["log_partitions_stopped"],
        )

    def _collect_log(self) -> Iterator[Metric]:
        counters = self._snapshot.counters
        yield make_counter(
            "muster_log_records_written", "Records written.", counters["records_written"]
        )
        yield make_counter("muster_log_written_bytes", "Bytes written.", counters["bytes_written"])
        yield make_counter("muster_log_flushes", "Syncs of the log.", counters["flushes"])
        yield make_histogram(
            "muster_log_flush_seconds",
            "Time to sync the log.",
            self._snapshot.flush_seconds,
        )
        yield make_histogram(
            "muster_log_write_seconds",
            "Time to encode and write a batch, without its sync.",
            self._snapshot.write_seconds,
        )
        yield make_counter(
            "muster_log_writes_refused",
            "Commands rejected because the disk was nearly full.",
            counters["writes_refused"],
        )
        yield from self._collect_invariants()
        yield make_gauge(
            "muster_log_replay_seconds",
            "Time to load the groups at startup.",
            counters["load_seconds"],
        )
        yield make_gauge(
            "muster_log_replayed_records",
            "Records loaded at startup.",
            counters["records_loaded"],
        )
        yield make_counter(
            "muster_log_checkpoints",
            "Checkpoints of the current state written since the start.",
            counters["checkpoints"],
        )
        yield make_gauge(
            "muster_log_unsettled_keys",
            "Changed record keys that the next checkpoint has to write.",
            counters["unsettled_keys"],
        )
        yield make_gauge(
            "muster_log_history_bytes",
            "Size of the complete log, from the history start of each partition.",
            counters["history_bytes"],
        )
        yield make_gauge(
            "muster_log_history_age_seconds",
            "Age of the oldest batch of the complete log.",
            counters["history_age_ms"] / 1000,
        )
        yield make_counter(
            "muster_log_history_trimmed_bytes",
            "Bytes of batches trimmed from the complete log.",
            counters["history_trimmed_bytes"],
        )
        yield make_gauge(
            "muster_log_history_partitions_left",
            "Log partitions that can no longer be trimmed.",
            counters["history_partitions_left"],
        )
        sizes = GaugeMetricFamily("muster_data_bytes", "Size of the data folder.", labels=["part"])
        for part, size in sorted(self._folder_bytes.items()):
            sizes.add_metric([part], size)
        yield sizes
        yield make_gauge(
            "muster_data_free_bytes", "Free space on the data folder's disk.", self._free_bytes
        )


def _collect_traces(traces: TraceFigures) -> Iterator[Metric]:
    yield make_counter(
        "muster_traces_exported",
        "Traced requests and syncs that the collector has taken.",
        traces.exported,
    )
    yield make_labelled(
        "muster_traces_dropped",
        "Traced requests and syncs that no collector has taken.",
        "reason",
        traces.dropped,
    )


def make_registry(collector: Collector) -> CollectorRegistry:
    """A registry with a collector and the metrics of the process."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    registry.register(collector)
    return registry
