"""Renders the metrics of a server in front of a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from cli.serve.figures.metric_families import (
    make_counter,
    make_gauge,
    make_histogram,
    make_labelled,
    make_labelled_gauge,
)
from cli.serve.figures.upstream_figures import UpstreamFigures


def collect_upstream(figures: UpstreamFigures) -> Iterator[Metric]:
    """The metric families."""
    yield make_gauge(
        "muster_upstream_reachable",
        "Whether the cluster answered what it was last asked.",
        int(figures.is_reachable),
    )
    yield from _collect_moves(figures)
    yield from _collect_commits(figures)
    yield from _collect_relays(figures)
    # No series without a mirror: 0 would mean that it is fresh.
    age = GaugeMetricFamily(
        "muster_upstream_acl_age_seconds", "Time since the cluster's ACLs were last read."
    )
    if figures.acl_age_s is not None:
        age.add_metric([], figures.acl_age_s)
    yield age


def _collect_moves(figures: UpstreamFigures) -> Iterator[Metric]:
    yield make_labelled_gauge(
        "muster_upstream_groups",
        "Groups that are not the cluster's alone, by place.",
        "place",
        figures.groups,
    )
    yield make_labelled(
        "muster_upstream_takeovers", "Takeovers that ended.", "result", figures.takeovers
    )
    yield make_labelled(
        "muster_upstream_releases", "Releases that ended.", "result", figures.releases
    )
    yield make_labelled(
        "muster_upstream_sentinels_lost",
        "Sentinels that lost their place in the cluster's group.",
        "cause",
        figures.sentinels_lost,
    )


def _collect_commits(figures: UpstreamFigures) -> Iterator[Metric]:
    yield make_counter(
        "muster_upstream_commit_batches",
        "Requests to the cluster with commits of groups that are here.",
        figures.commit_batches,
    )
    yield make_counter(
        "muster_upstream_commits", "Commits of members in those requests.", figures.commits
    )
    yield make_histogram(
        "muster_upstream_commit_seconds",
        "Time from a member's commit to the cluster's answer.",
        figures.commit_seconds,
    )
    yield make_gauge(
        "muster_upstream_commits_in_flight",
        "Commits that the cluster has not answered yet.",
        figures.commits_in_flight,
    )
    yield make_gauge(
        "muster_upstream_commits_waiting",
        "Commits that wait for the request before theirs, or for the sentinel.",
        figures.commits_waiting,
    )


def _collect_relays(figures: UpstreamFigures) -> Iterator[Metric]:
    yield make_labelled_gauge(
        "muster_upstream_relay_connections",
        "Open connections of clients to the relay of a broker.",
        "broker",
        figures.relay_connections,
    )
    yield make_counter(
        "muster_upstream_relay_connections_refused",
        "Connections of clients to relays above the limit.",
        figures.relay_connections_refused,
    )
    yield make_labelled(
        "muster_upstream_relay_connections_closed",
        "Connections of clients that a relay closed.",
        "reason",
        figures.relay_connections_closed,
    )
    yield make_counter(
        "muster_upstream_relay_requests_answered",
        "Requests of clients that a relay answered itself.",
        figures.relay_requests_answered,
    )
    yield make_labelled(
        "muster_upstream_relayed_bytes",
        "Bytes passed through the relays.",
        "way",
        figures.relayed_bytes,
    )
    yield make_labelled(
        "muster_upstream_requests_passed_on",
        "Requests to Muster's own node that were passed on to the cluster.",
        "api",
        figures.requests_passed_on,
    )
