"""A snapshot of the running server's figures for `/metrics`, taken on the event loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from cli.serve.figures.metric_families import HistogramFigures, copy_histogram
from cli.serve.figures.upstream_figures import UpstreamFigures
from coordinator.core.state.classic_group import ClassicGroup
from coordinator.core.state.classic_states import ClassicGroupState
from coordinator.core.state.consumer_group import ConsumerGroup, ConsumerGroupState
from coordinator.core.state.shard import Shard
from coordinator.runtime.loop.stats import Histogram, Stats
from model.topics import TopicImage


class GroupFigures(NamedTuple):
    """Figures of a consumer group, or of a classic group, whose epoch is its generation."""

    group_id: str
    state: str
    members: int
    unconverged: int
    group_epoch: int
    assignment_epoch: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The server at one moment. ``counters`` are the plain counters of ``Stats``."""

    # More than 15 attributes: one attribute is one metric or family of metrics.

    is_ready: bool
    groups: tuple[GroupFigures, ...]
    groups_by_state: Mapping[tuple[str, str], int]
    groups_frozen: int
    topics: int
    partitions: int
    kafka_connections: int
    kafka_refusals: Mapping[str, int]
    throttled_s: Mapping[str, float]
    certificates_not_after: Mapping[str, float]
    counters: Mapping[str, float]
    commands: Mapping[str, int]
    errors: Mapping[str, int]
    members_expired: Mapping[str, int]
    rebalance_causes: Mapping[str, int]
    invariant_violations: Mapping[str, int]
    assignor_failures: Mapping[str, int]
    flush_seconds: HistogramFigures
    assignor_seconds: HistogramFigures
    loop_lag_seconds: HistogramFigures
    collection_seconds: HistogramFigures
    audit_lines: Mapping[str, int]
    audit_left_out: Mapping[str, int]
    upstream: UpstreamFigures | None = None
    """``None`` unless the server stands in front of a cluster."""


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
    """The Kafka listener's figures about its connections."""

    @property
    def connections(self) -> int: ...

    @property
    def refusals(self) -> dict[str, int]: ...


class AuditFigures(Protocol):
    """The audit log's figures: lines by kind, and those that were left out."""

    @property
    def lines(self) -> Mapping[str, int]: ...

    def left_out(self) -> Mapping[str, int]: ...


def compute_snapshot(
    shards: Iterable[Shard],
    image: TopicImage,
    stats: Stats,
    *,
    loop_lag: Histogram,
    collections: Histogram,
    kafka: KafkaFigures,
    throttled_s: Mapping[str, float],
    certificates_not_after: Mapping[str, float],
    is_ready: bool,
    audit: AuditFigures | None = None,
    upstream: UpstreamFigures | None = None,
) -> Snapshot:
    """Copy what the metrics need; called on the event loop."""
    figures: list[GroupFigures] = []
    others = Counter({("consumer", state.value): 0 for state in ConsumerGroupState})
    frozen = 0
    for shard in shards:
        frozen += len(shard.freezes)
        consumers = [_compute_figures(group) for group in shard.consumer_groups.values()]
        others.update(("consumer", group.state) for group in consumers)
        others.update(_count_other_groups(shard))
        figures += consumers
        figures += (
            _compute_classic_figures(group)
            for group_id, group in shard.all_classic_groups().items()
            if group_id not in shard.consumer_groups and group_id not in shard.foreign_groups
        )
    return Snapshot(
        is_ready=is_ready,
        groups=tuple(figures),
        groups_by_state=dict(others),
        groups_frozen=frozen,
        topics=len(image.by_name),
        partitions=sum(topic.partitions for topic in image.by_name.values()),
        kafka_connections=kafka.connections,
        kafka_refusals=kafka.refusals,
        throttled_s={"kafka": 0.0, "grpc": 0.0, **throttled_s},
        certificates_not_after=certificates_not_after,
        counters={name: getattr(stats, name) for name in _PLAIN_COUNTERS},
        commands=dict(stats.commands),
        errors=dict(stats.errors),
        members_expired=dict(stats.members_expired),
        rebalance_causes=dict(stats.rebalance_causes),
        invariant_violations=dict(stats.invariant_violations),
        assignor_failures=dict(stats.assignor_failures_by_reason),
        flush_seconds=copy_histogram(stats.flush_seconds),
        assignor_seconds=copy_histogram(stats.assignor_seconds),
        loop_lag_seconds=copy_histogram(loop_lag),
        collection_seconds=copy_histogram(collections),
        audit_lines={} if audit is None else dict(audit.lines),
        audit_left_out={} if audit is None else audit.left_out(),
        upstream=upstream,
    )


def _count_other_groups(shard: Shard) -> Counter[tuple[str, str]]:
    """Groups other than consumer groups by type and state; offsets alone make a classic group."""
    consumers, foreign = shard.consumer_groups, shard.foreign_groups
    # Include live groups: a classic group is only written when its rebalance completes.
    classic = shard.all_classic_groups()
    counts: Counter[tuple[str, str]] = Counter()
    for group_id, group in foreign.items():
        if group_id not in consumers:
            counts[group.group_type, group.state()] += 1
    for group_id, known in classic.items():
        if group_id not in consumers and group_id not in foreign:
            counts["classic", known.state.value] += 1
    counts["classic", "Empty"] += len(
        shard.offset_groups - consumers.keys() - foreign.keys() - classic.keys()
    )
    return counts


def _compute_figures(group: ConsumerGroup) -> GroupFigures:
    unconverged = sum(not member.is_reconciled_to(group.group_epoch) for member in group.members())
    return GroupFigures(
        group.group_id,
        group.state().value,
        group.member_count,
        unconverged,
        group.group_epoch,
        group.target_epoch,
    )


def _compute_classic_figures(group: ClassicGroup) -> GroupFigures:
    """A member that still has to rejoin, or to sync, has not converged."""
    match group.state:
        case ClassicGroupState.PREPARING_REBALANCE:
            unconverged = len(group.members) - group.awaiting_joins
        case ClassicGroupState.COMPLETING_REBALANCE:
            unconverged = len(group.pending_syncs)
        case _:
            unconverged = 0
    is_settled = group.state in (ClassicGroupState.STABLE, ClassicGroupState.EMPTY)
    return GroupFigures(
        group.group_id,
        group.state.value,
        len(group.members),
        unconverged,
        group.generation,
        group.generation if is_settled else group.generation - 1,
    )
