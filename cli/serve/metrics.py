"""What `/metrics` says: a snapshot of the running server, as Prometheus' text.

The snapshot (``cli.serve.snapshot``) is taken on the loop, for the state changes there; the text is
made of it in a thread.
Series follow the state, so that those of a group which is gone are gone too. No series carries a
member or client id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from cli.serve.snapshot import GroupFigures, HistogramFigures, Snapshot
from coordinator.runtime.loop.stats import Histogram

FENCES = frozenset({"FENCED_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID", "STALE_MEMBER_EPOCH"})
"""Error answers that tell a member that it is not what it believes."""


def compute_folder_bytes(folder: Path) -> int:
    """The size of all files below a folder; files that go meanwhile count as nothing."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total


class SnapshotCollector(Collector):
    """Metric families of one snapshot.

    ``groups_max`` bounds the groups that have series of their own; beyond it only the first do,
    and ``muster_metrics_groups_omitted`` says how many do not.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        version: str,
        groups_max: int,
        folder_bytes: Mapping[str, int],
        free_bytes: int,
    ) -> None:
        self._snapshot = snapshot
        self._version = version
        self._groups_max = groups_max
        self._folder_bytes = folder_bytes
        self._free_bytes = free_bytes

    def collect(self) -> Iterator[Metric]:
        yield from self._collect_server()
        yield from self._collect_groups()
        yield from self._collect_answers()
        yield from self._collect_log()

    def _collect_server(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        info = GaugeMetricFamily("muster_build_info", "The version.", labels=["version"])
        info.add_metric([self._version], 1)
        yield info
        yield _gauge("muster_ready", "Whether commands are served.", int(snapshot.is_ready))
        yield _gauge("muster_topics", "Topics.", snapshot.topics)
        yield _gauge("muster_topic_partitions", "Partitions of all topics.", snapshot.partitions)
        yield _histogram(
            "muster_loop_lag_seconds",
            "How late the event loop ran a timer.",
            snapshot.loop_lag_seconds,
        )
        yield _counter(
            "muster_stalled_seconds",
            "Time by which deadlines were moved, for the server itself had stood still.",
            snapshot.counters["stalled_ms"] / 1000,
        )

    def _collect_groups(self) -> Iterator[Metric]:
        groups = self._snapshot.groups
        by_state = GaugeMetricFamily("muster_groups", "Groups.", labels=["type", "state"])
        for (group_type, state), count in sorted(self._snapshot.groups_by_state.items()):
            by_state.add_metric([group_type, state], count)
        yield by_state
        members = sum(group.members for group in groups)
        yield _gauge("muster_members", "Members of all groups.", members)
        yield _gauge(
            "muster_members_unconverged",
            "Members that have not reached the target assignment of their group.",
            sum(group.unconverged for group in groups),
        )
        shown = sorted(groups)[: self._groups_max]
        yield _gauge(
            "muster_metrics_groups_omitted",
            "Groups without series of their own: see metrics.groups.max.",
            len(groups) - len(shown),
        )
        yield from _collect_each_group(shown)

    def _collect_answers(self) -> Iterator[Metric]:
        snapshot = self._snapshot
        counters = snapshot.counters
        yield _counter(
            "muster_rebalances",
            "Changes of a group that call for a new target assignment (group epochs).",
            counters["group_epoch_bumps"],
        )
        yield _counter(
            "muster_target_assignments", "Target assignments.", counters["targets_installed"]
        )
        yield _histogram(
            "muster_assignor_seconds",
            "How long computing a target assignment took.",
            snapshot.assignor_seconds,
        )
        yield _labelled(
            "muster_assignor_failures",
            "Target assignments that could not be computed.",
            "reason",
            snapshot.assignor_failures,
        )
        yield _labelled("muster_commands", "Commands handled.", "command", snapshot.commands)
        yield _labelled("muster_errors", "Error answers.", "error", snapshot.errors)
        yield _labelled(
            "muster_fences",
            "Error answers that tell a member that it is not what it believes.",
            "error",
            {name: count for name, count in snapshot.errors.items() if name in FENCES},
        )
        yield _labelled(
            "muster_members_expired",
            "Members removed by a deadline.",
            "deadline",
            snapshot.members_expired,
        )
        yield _counter(
            "muster_offsets_committed", "Offsets committed.", counters["offsets_committed"]
        )
        yield _counter(
            "muster_offsets_expired",
            "Offsets removed for they were past their retention.",
            counters["offsets_expired"],
        )
        yield _counter(
            "muster_groups_expired",
            "Groups removed for they were empty and had no offsets left.",
            counters["groups_expired"],
        )
        yield _counter(
            "muster_transactions_timed_out",
            "Transactions aborted for nobody had ended them.",
            counters["transactions_timed_out"],
        )
        yield _gauge(
            "muster_kafka_connections",
            "Clients connected on the Kafka wire.",
            snapshot.kafka_connections,
        )
        yield _labelled(
            "muster_kafka_connections_refused",
            "Connections refused or ended for what they sent.",
            "reason",
            snapshot.kafka_refusals,
        )

    def _collect_log(self) -> Iterator[Metric]:
        counters = self._snapshot.counters
        yield _counter("muster_log_records_written", "Records.", counters["records_written"])
        yield _counter("muster_log_written_bytes", "Bytes of batches.", counters["bytes_written"])
        yield _counter("muster_log_flushes", "Syncs of the log.", counters["flushes"])
        yield _histogram(
            "muster_log_flush_seconds",
            "How long a sync of the log took.",
            self._snapshot.flush_seconds,
        )
        yield _counter(
            "muster_log_writes_refused",
            "Commands refused for want of space.",
            counters["writes_refused"],
        )
        yield _gauge(
            "muster_log_replay_seconds",
            "How long loading the groups took at the start.",
            counters["load_seconds"],
        )
        yield _gauge(
            "muster_log_replayed_records",
            "Records of groups that were loaded at the start.",
            counters["records_loaded"],
        )
        yield _gauge(
            "muster_log_history_bytes",
            "Bytes of the batches from the history start of each partition on.",
            counters["history_bytes"],
        )
        yield _gauge(
            "muster_log_history_age_seconds",
            "How old the oldest batch of the history is.",
            counters["history_age_ms"] / 1000,
        )
        yield _counter(
            "muster_log_history_trimmed_bytes",
            "Bytes of batches that left the history.",
            counters["history_trimmed_bytes"],
        )
        yield _gauge(
            "muster_log_history_partitions_left",
            "Partitions of the log that cannot be trimmed any more.",
            counters["history_partitions_left"],
        )
        sizes = GaugeMetricFamily("muster_data_bytes", "Bytes in the data folder.", labels=["part"])
        for part, size in sorted(self._folder_bytes.items()):
            sizes.add_metric([part], size)
        yield sizes
        yield _gauge("muster_data_free_bytes", "Free space beside the data.", self._free_bytes)


def make_registry(collector: Collector) -> CollectorRegistry:
    """A registry of a collector, and of what is known of the process."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    registry.register(collector)
    return registry


def _collect_each_group(groups: Sequence[GroupFigures]) -> Iterator[Metric]:
    families = (
        ("muster_group_members", "Members.", "members"),
        ("muster_group_members_unconverged", "Members short of the target.", "unconverged"),
        ("muster_group_epoch", "The group epoch.", "group_epoch"),
        ("muster_group_assignment_epoch", "The epoch of the target.", "assignment_epoch"),
    )
    for name, text, attribute in families:
        family = GaugeMetricFamily(name, text, labels=["group"])
        for group in groups:
            family.add_metric([group.group_id], getattr(group, attribute))
        yield family


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _labelled(name: str, text: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, text, labels=[label])
    for key, count in sorted(counts.items()):
        family.add_metric([key], count)
    return family


def _histogram(name: str, text: str, figures: HistogramFigures) -> Metric:
    buckets: list[tuple[str, float]] = []
    seen = 0
    for bound, count in zip((*Histogram.BOUNDS_S, None), figures.counts, strict=True):
        seen += count
        buckets.append(("+Inf" if bound is None else str(bound), seen))
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=figures.sum_s)
