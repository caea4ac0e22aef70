"""The server, its listeners and log partitions, and the cluster that it stands in front of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console.facts import LogPartition, ServerFacts
from muster.v1 import upstream_pb2
from wording.times import render_span, render_time


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    cells: Sequence[str]
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class UpstreamPart:
    """The cluster. ``fault`` is empty if nothing is wrong."""

    facts: Mapping[str, str]
    fault: str
    brokers: Sequence[Row]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What the page shows."""

    facts: Mapping[str, str]
    listeners: Sequence[Row]
    partitions: Sequence[Row]
    stopped: int
    upstream: UpstreamPart | None
    versions: Mapping[str, str]


def compute_cluster_view(
    facts: ServerFacts,
    upstream: upstream_pb2.GetUpstreamResponse | None,
    transactions: int,
    versions: Mapping[str, str],
    now_ms: int,
) -> ClusterView:
    """What is shown; ``transactions`` are open."""
    counts = facts.counts
    partitions = [
        Row(
            (
                str(each.number),
                str(each.groups),
                _describe_partition(each),
            ),
            is_bad=each.is_stopped,
        )
        for each in facts.log_partitions
    ]
    return ClusterView(
        {
            "Cluster id": facts.cluster_id,
            "Node id": str(facts.node_id),
            "Process": str(facts.process_id),
            "Started": f"{render_time(facts.started_ms)}, "
            f"{render_span(max(0, now_ms - facts.started_ms))} ago",
            "Topics": f"{counts.topics} with {counts.topic_partitions} partitions",
            "Kafka connections": str(counts.kafka_connections),
            "gRPC sessions": str(counts.grpc_sessions),
            "Open transactions": str(transactions),
        },
        [Row((each.name, each.protocol, each.address)) for each in facts.listeners],
        partitions,
        sum(each.is_stopped for each in facts.log_partitions),
        None if upstream is None else _compute_upstream(upstream),
        versions,
    )


def _describe_partition(partition: LogPartition) -> str:
    if partition.is_stopped:
        return "stopped: see the server's log, and restart it"
    return "serves" if partition.is_loaded else "is being loaded"


def _compute_upstream(found: upstream_pb2.GetUpstreamResponse) -> UpstreamPart:
    facts = {
        "Cluster id": found.cluster_id,
        "Reachable": "yes" if found.reachable else "no",
        "Release": found.release,
        "Muster is": found.identity,
        "Muster's node": found.node_address,
        "Offsets are kept": found.offsets_store,
        "Groups taken by themselves": found.takeover_groups or "none",
        "Serves the consumer protocol itself": "yes" if found.has_consumer_protocol else "no",
    }
    brokers = [
        Row((str(each.node_id), each.address, each.rack or "-", each.relay_address or "none yet"))
        for each in found.brokers
    ]
    return UpstreamPart(facts, found.fault, brokers)
