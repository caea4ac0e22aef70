"""The figures of a server in front of a cluster at one moment, taken on the event loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cli.serve.figures.metric_families import HistogramFigures, copy_histogram
from model.places import Place
from upstream.statistics import UpstreamStatistics


@dataclass(frozen=True, slots=True)
class UpstreamFigures:
    """Groups by place, without those that are the cluster's alone, and the counters."""

    # More than 15 attributes: one attribute is one metric.
    is_reachable: bool
    groups: Mapping[str, int]
    takeovers: Mapping[str, int]
    releases: Mapping[str, int]
    sentinels_lost: Mapping[str, int]
    commit_batches: int
    commits: int
    commit_seconds: HistogramFigures
    commits_in_flight: int
    commits_waiting: int
    relay_connections: Mapping[str, int]
    relay_connections_refused: int
    relay_connections_closed: Mapping[str, int]
    relay_requests_answered: int
    relayed_bytes: Mapping[str, int]
    requests_passed_on: Mapping[str, int]
    acl_age_s: float | None


def compute_upstream_figures(
    statistics: UpstreamStatistics, *, is_reachable: bool, places: Iterable[Place]
) -> UpstreamFigures:
    """Copy what the metrics need. ``places``: of each group that has one of its own."""
    groups = Counter({place.value: 0 for place in Place if place is not Place.UPSTREAM})
    groups.update(place.value for place in places)
    return UpstreamFigures(
        is_reachable=is_reachable,
        groups=groups,
        takeovers=dict(statistics.takeovers),
        releases=dict(statistics.releases),
        sentinels_lost=dict(statistics.sentinels_lost),
        commit_batches=statistics.commit_batches,
        commits=statistics.commits,
        commit_seconds=copy_histogram(statistics.commit_seconds),
        commits_in_flight=statistics.commits_in_flight_now,
        commits_waiting=max(
            statistics.commits_unanswered_now - statistics.commits_in_flight_now, 0
        ),
        relay_connections={
            str(node_id): count for node_id, count in statistics.relay_connections_now.items()
        },
        relay_connections_refused=statistics.relay_connections_refused,
        relay_connections_closed=dict(statistics.relay_connections_closed),
        relay_requests_answered=statistics.relay_requests_answered,
        relayed_bytes=dict(statistics.relayed_bytes),
        requests_passed_on=dict(statistics.requests_passed_on),
        acl_age_s=statistics.compute_acl_age_s(),
    )
