"""Metrics of how long clients wait, and of what waits now."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from cli.serve.figures.metric_families import (
    make_gauge,
    make_labelled_gauge,
    make_labelled_histogram,
)
from cli.serve.figures.snapshot import Waits


def collect_waits(waits: Waits) -> Iterator[Metric]:
    """The metric families."""
    yield from _collect_rebalances(waits)
    yield make_gauge(
        "muster_parked_heartbeats",
        "Heartbeats that are held back until there is a change for their member.",
        waits.parked_heartbeats,
    )
    yield make_gauge(
        "muster_waiting_members",
        "Members of classic groups that wait for the others to join, or for their assignment.",
        waits.waiting_members,
    )
    yield make_gauge("muster_grpc_sessions", "Open session streams.", waits.sessions)
    yield make_labelled_histogram(
        "muster_kafka_request_seconds",
        "Time from when a request is taken from its connection until its response.",
        "api",
        waits.request_seconds,
    )
    yield make_labelled_histogram(
        "muster_grpc_call_seconds",
        "Time of calls with one request and one response, and of commits on session streams.",
        "method",
        waits.call_seconds,
    )
    yield make_labelled_histogram(
        "muster_queue_seconds",
        "Time for which commands of members, and what is to be written, wait for their turn.",
        "queue",
        waits.queue_seconds,
    )


def _collect_rebalances(waits: Waits) -> Iterator[Metric]:
    yield make_labelled_histogram(
        "muster_rebalance_seconds",
        "Time from the first cause of a rebalance until all members had what they were to get.",
        "type",
        waits.rebalance_seconds,
    )
    yield make_labelled_gauge(
        "muster_groups_rebalancing",
        "Groups whose members have not all got what they are to get.",
        "type",
        waits.unsettled_groups,
    )
    # No series without such a group: 0 would be the age of one that has just begun.
    yield make_labelled_gauge(
        "muster_rebalance_oldest_seconds",
        "For how long the first of these groups rebalances.",
        "type",
        waits.unsettled_s,
    )
