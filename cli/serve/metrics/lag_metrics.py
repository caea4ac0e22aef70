"""Metrics of the looks at the lag of groups, and of all groups together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from cli.serve.figures.metric_families import make_gauge, make_labelled_gauge
from cli.serve.lag.group_status import Status
from cli.serve.lag.lag_figures import LagFigures


def collect_lag(figures: LagFigures, now_s: float) -> Iterator[Metric]:
    """The metric families. ``now_s`` is monotonic, as the times of the look."""
    yield make_gauge(
        "muster_lag_age_seconds",
        "Age of the figures about lag: since when the look at all groups had begun.",
        max(now_s - figures.began_s, 0.0),
    )
    yield make_gauge(
        "muster_lag_look_seconds",
        "How long the last look at the lag of all groups took.",
        figures.ended_s - figures.began_s,
    )
    yield make_gauge(
        "muster_lag_groups_omitted",
        "Groups whose lag is not looked at (metrics.partitions.max).",
        figures.omitted,
    )
    yield make_gauge(
        "muster_lag_groups_failed",
        "Groups whose committed offsets could not be read in the last look.",
        figures.failed,
    )
    counts = Counter(dict.fromkeys((Status.OK, Status.WARN, Status.ERR), 0))
    counts.update(group.status for group in figures.groups.values() if group.status)
    yield make_labelled_gauge(
        "muster_groups_by_status",
        "Groups by their status.",
        "status",
        {status.name: count for status, count in counts.items()},
    )
