"""Writes boards/*.json, the boards for Grafana, from what their panels show.

    tools/generate_boards.py            write them
    tools/generate_boards.py --check    fail if a file differs

A board in JSON is long and says little: position, data source and style of each panel are the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parents[1] / "boards"
SCHEMA_VERSION: Final = 38
"""Grafana 10's; later ones read it."""
WIDTH: Final = 24
HEIGHT: Final = 7
RATE: Final = "$__rate_interval"
OF_SERVER: Final = 'job=~"$job",instance=~"$instance"'
OF_GROUP: Final = OF_SERVER + ',group=~"$group"'


@dataclass(frozen=True)
class Panel:
    """One panel; ``queries`` are PromQL by legend."""

    title: str
    text: str
    queries: Mapping[str, str]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8


@dataclass(frozen=True)
class Board:
    """Rows of panels by their heading."""

    uid: str
    title: str
    rows: Mapping[str, Sequence[Panel]]
    has_group: bool = False


def rate_of(metric: str, by: str = "") -> str:
    """Events a second, over the servers or by labels."""
    return f"sum{f' by ({by})' if by else ''} (rate({metric}{{{OF_SERVER}}}[{RATE}]))"


def quantile_of(quantile: float, metric: str, by: str = "", more: str = "") -> str:
    """A quantile of a histogram, over the servers or by a label."""
    labels = f"le, {by}" if by else "le"
    rates = f"sum by ({labels}) (rate({metric}_bucket{{{OF_SERVER}{more}}}[{RATE}]))"
    return f"histogram_quantile({quantile}, {rates})"


def sum_of(metric: str, by: str = "", more: str = "") -> str:
    """A gauge, over the servers or by labels."""
    return f"sum{f' by ({by})' if by else ''} ({metric}{{{OF_SERVER}{more}}})"


def quantiles_of(metric: str) -> dict[str, str]:
    """The median and the 99th percentile."""
    return {"p50": quantile_of(0.5, metric), "p99": quantile_of(0.99, metric)}


def stat(title: str, text: str, query: str, unit: str = "short") -> Panel:
    """One number."""
    return Panel(title, text, {"": query}, unit, "stat", 4)


SERVER = Board(
    "muster-server",
    "Muster: server",
    {
        "Now": [
            stat("Ready", "Servers that serve commands.", sum_of("muster_ready")),
            stat("Groups", "Groups of all types.", sum_of("muster_groups")),
            stat("Members", "Members of all groups.", sum_of("muster_members")),
            stat(
                "Rebalancing",
                "Groups whose members have not all got what they are to get.",
                sum_of("muster_groups_rebalancing"),
            ),
            stat(
                "Groups in error",
                "Groups that have stopped, stalled or been rewound.",
                sum_of("muster_groups_by_status", more=',status="ERR"'),
            ),
            stat(
                "Free disk",
                "Free space on the disk of the data folder.",
                f"min (muster_data_free_bytes{{{OF_SERVER}}})",
                "bytes",
            ),
        ],
        "Groups": [
            Panel(
                "Groups",
                "By type and state.",
                {"{{type}} {{state}}": sum_of("muster_groups", "type, state") + " > 0"},
            ),
            Panel(
                "Members",
                "Members, and those that have not reached the target assignment.",
                {
                    "members": sum_of("muster_members"),
                    "unconverged": sum_of("muster_members_unconverged"),
                    "parked heartbeats": sum_of("muster_parked_heartbeats"),
                    "waiting for others": sum_of("muster_waiting_members"),
                },
            ),
            Panel(
                "Groups by status",
                "OK, WARN (the lag grows), ERR (stopped, stalled or rewound).",
                {"{{status}}": sum_of("muster_groups_by_status", "status")},
            ),
        ],
        "Rebalances": [
            Panel(
                "Rebalances by cause",
                "A second.",
                {"{{type}} {{cause}}": rate_of("muster_rebalances_total", "type, cause") + " > 0"},
            ),
            Panel(
                "Time until converged",
                "From the first cause until all members had what they were to get.",
                quantiles_of("muster_rebalance_seconds"),
                "s",
            ),
            Panel(
                "Oldest rebalance",
                "For how long the first group that rebalances does.",
                {"{{type}}": f"max by (type) (muster_rebalance_oldest_seconds{{{OF_SERVER}}})"},
                "s",
            ),
            Panel(
                "Members fenced and expired",
                "A second.",
                {
                    "{{error}}": rate_of("muster_fences_total", "error"),
                    "{{deadline}} expired": rate_of("muster_members_expired_total", "deadline"),
                },
            ),
            Panel(
                "Time to compute a target",
                "Of the server's assignors.",
                quantiles_of("muster_assignor_seconds"),
                "s",
            ),
            Panel(
                "Targets",
                "Installed and failed, a second.",
                {
                    "installed": rate_of("muster_target_assignments_total"),
                    "failed, {{reason}}": rate_of("muster_assignor_failures_total", "reason"),
                },
            ),
        ],
        "Requests": [
            Panel(
                "Kafka requests",
                "A second, by API.",
                {"{{api}}": rate_of("muster_kafka_request_seconds_count", "api")},
            ),
            Panel(
                "Kafka requests, p99",
                "Waits included: of a JoinGroup for other members, of a Fetch for records.",
                {"{{api}}": quantile_of(0.99, "muster_kafka_request_seconds", "api")},
                "s",
            ),
            Panel(
                "gRPC calls, p99",
                "By method.",
                {"{{method}}": quantile_of(0.99, "muster_grpc_call_seconds", "method")},
                "s",
            ),
            Panel(
                "Queues, p99",
                "Time for which commands, and what is to be written, wait for their turn.",
                {"{{queue}}": quantile_of(0.99, "muster_queue_seconds", "queue")},
                "s",
            ),
            Panel(
                "Errors",
                "Error responses a second, by Kafka's name.",
                {"{{error}}": rate_of("muster_errors_total", "error")},
            ),
            Panel(
                "Connections",
                "Kafka connections, and session streams of gRPC.",
                {
                    "Kafka": sum_of("muster_kafka_connections"),
                    "gRPC sessions": sum_of("muster_grpc_sessions"),
                    "refused a second, {{reason}}": rate_of(
                        "muster_kafka_connections_refused_total", "reason"
                    ),
                },
            ),
            Panel(
                "Throttled",
                "Part of the time for which quotas throttled clients.",
                {"{{door}}": rate_of("muster_throttled_seconds_total", "door")},
                "percentunit",
            ),
            Panel(
                "Translated requests",
                "Requests of the classic protocol on consumer groups, a second.",
                {"{{command}}": rate_of("muster_translated_requests_total", "command")},
            ),
            Panel(
                "Commits",
                "Offsets committed a second.",
                {"offsets": rate_of("muster_offsets_committed_total")},
            ),
        ],
        "The log and the process": [
            Panel(
                "Sync of the log",
                "No commit is faster.",
                quantiles_of("muster_log_flush_seconds"),
                "s",
            ),
            Panel(
                "Write of a batch",
                "Without its sync.",
                quantiles_of("muster_log_write_seconds"),
                "s",
            ),
            Panel(
                "Written",
                "Bytes a second.",
                {"bytes": rate_of("muster_log_written_bytes_total")},
                "Bps",
            ),
            Panel(
                "Event loop",
                "How late it ran a timer, and how long collections of garbage took: p99.",
                {
                    "late": quantile_of(0.99, "muster_loop_lag_seconds"),
                    "garbage": quantile_of(0.99, "muster_garbage_collection_seconds"),
                },
                "s",
            ),
            Panel(
                "CPU and memory",
                "CPU seconds a second; resident memory.",
                {
                    "CPU": rate_of("process_cpu_seconds_total"),
                    "memory (GiB)": sum_of("process_resident_memory_bytes") + " / 2^30",
                },
            ),
            Panel(
                "Data folder",
                "The log and the topics; the complete history of the log.",
                {
                    "{{part}}": sum_of("muster_data_bytes", "part"),
                    "history": sum_of("muster_log_history_bytes"),
                },
                "bytes",
            ),
        ],
    },
)

GROUPS = Board(
    "muster-groups",
    "Muster: groups",
    {
        "The worst": [
            Panel(
                "Most behind in time",
                "Ten groups by the age of the first record that is not committed.",
                {"{{group}}": f"topk(10, muster_group_lag_seconds{{{OF_SERVER}}})"},
                "s",
                "bargauge",
            ),
            Panel(
                "Most behind in records",
                "Ten groups by lag.",
                {"{{group}}": f"topk(10, muster_group_lag{{{OF_SERVER}}})"},
                "short",
                "bargauge",
            ),
            Panel(
                "In error",
                "Groups that have stopped, stalled or been rewound (3), or whose lag grows (2).",
                {"{{group}}": f"topk(20, muster_group_status{{{OF_SERVER}}} > 1)"},
                "short",
                "bargauge",
            ),
        ],
        "The groups": [
            Panel("Lag", "Records.", {"{{group}}": f"muster_group_lag{{{OF_GROUP}}}"}),
            Panel(
                "Lag in seconds",
                "Age of the first record that is not committed.",
                {"{{group}}": f"muster_group_lag_seconds{{{OF_GROUP}}}"},
                "s",
            ),
            Panel(
                "Trend",
                "Records a second by which the lag grows, or shrinks below 0.",
                {"{{group}}": f"deriv(muster_group_lag{{{OF_GROUP}}}[10m])"},
            ),
            Panel(
                "Lag by topic",
                "Records.",
                {"{{group}} {{topic}}": f"muster_group_topic_lag{{{OF_GROUP}}}"},
            ),
            Panel(
                "Since the last commit",
                "How long ago the group committed.",
                {"{{group}}": f"time() - muster_group_last_commit_timestamp_seconds{{{OF_GROUP}}}"},
                "s",
            ),
            Panel(
                "Status",
                "1 OK, 2 WARN, 3 ERR.",
                {"{{group}}": f"muster_group_status{{{OF_GROUP}}}"},
            ),
            Panel(
                "Members",
                "Members, and those that have not reached the target assignment.",
                {
                    "{{group}}": f"muster_group_members{{{OF_GROUP}}}",
                    "{{group}} unconverged": f"muster_group_members_unconverged{{{OF_GROUP}}}",
                },
            ),
            Panel(
                "Rebalances",
                "New group epochs in ten minutes.",
                {"{{group}}": f"changes(muster_group_epoch{{{OF_GROUP}}}[10m])"},
            ),
            Panel(
                "Ahead of the end",
                "Committed offsets above the end: the topic lost records, or was made again.",
                {"{{group}}": f"muster_group_offsets_ahead{{{OF_GROUP}}} > 0"},
            ),
        ],
        "The figures": [
            Panel(
                "Age of the figures",
                "Since when the last look at the lag of all groups had begun.",
                {"{{instance}}": f"muster_lag_age_seconds{{{OF_SERVER}}}"},
                "s",
            ),
            Panel(
                "Time of a look",
                "How long it took.",
                {"{{instance}}": f"muster_lag_look_seconds{{{OF_SERVER}}}"},
                "s",
            ),
            Panel(
                "Left out",
                "Groups without series, without lag, and whose offsets could not be read.",
                {
                    "no series": sum_of("muster_metrics_groups_omitted"),
                    "no lag": sum_of("muster_lag_groups_omitted"),
                    "not read": sum_of("muster_lag_groups_failed"),
                },
            ),
        ],
    },
    has_group=True,
)

UPSTREAM = Board(
    "muster-upstream",
    "Muster: in front of a cluster",
    {
        "Groups": [
            stat(
                "Cluster reachable",
                "1 if it answered what it was last asked.",
                f"min (muster_upstream_reachable{{{OF_SERVER}}})",
            ),
            Panel(
                "Groups by place",
                "Groups that are not the cluster's alone.",
                {"{{place}}": sum_of("muster_upstream_groups", "place")},
                width=10,
            ),
            Panel(
                "Takeovers and releases",
                "In an hour, by result.",
                {
                    "takeover {{result}}": "sum by (result) "
                    f"(increase(muster_upstream_takeovers_total{{{OF_SERVER}}}[1h]))",
                    "release {{result}}": "sum by (result) "
                    f"(increase(muster_upstream_releases_total{{{OF_SERVER}}}[1h]))",
                },
                width=10,
            ),
        ],
        "Commits": [
            Panel(
                "Commits in the cluster",
                "A second, and the requests that carry them.",
                {
                    "commits": rate_of("muster_upstream_commits_total"),
                    "requests": rate_of("muster_upstream_commit_batches_total"),
                },
            ),
            Panel(
                "Time of a commit",
                "Until the cluster's answer, waiting included.",
                quantiles_of("muster_upstream_commit_seconds"),
                "s",
            ),
            Panel(
                "Commits on their way",
                "That the cluster has not answered, and that wait.",
                {
                    "in flight": sum_of("muster_upstream_commits_in_flight"),
                    "waiting": sum_of("muster_upstream_commits_waiting"),
                },
            ),
        ],
        "Relays": [
            Panel(
                "Connections",
                "By broker.",
                {"{{broker}}": sum_of("muster_upstream_relay_connections", "broker")},
            ),
            Panel(
                "Bytes",
                "A second, each way.",
                {"{{way}}": rate_of("muster_upstream_relayed_bytes_total", "way")},
                "Bps",
            ),
            Panel(
                "Sentinels lost, connections closed",
                "A second, by cause.",
                {
                    "sentinel {{cause}}": rate_of("muster_upstream_sentinels_lost_total", "cause"),
                    "connection {{reason}}": rate_of(
                        "muster_upstream_relay_connections_closed_total", "reason"
                    ),
                },
            ),
        ],
    },
)

BOARDS: Final = (SERVER, GROUPS, UPSTREAM)


def make_board(board: Board) -> dict[str, Any]:
    """The board as Grafana loads it."""
    panels: list[dict[str, Any]] = []
    top = 0
    for heading, row in board.rows.items():
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": heading,
                "collapsed": False,
                "gridPos": {"x": 0, "y": top, "w": WIDTH, "h": 1},
                "panels": [],
            }
        )
        top += 1
        left = 0
        for panel in row:
            if left + panel.width > WIDTH:
                left, top = 0, top + HEIGHT
            place = {"x": left, "y": top, "w": panel.width, "h": HEIGHT}
            panels.append(make_panel(panel, len(panels) + 1, place))
            left += panel.width
        top += HEIGHT
    return {
        "uid": board.uid,
        "title": board.title,
        "tags": ["muster", "kafka"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "templating": {"list": make_variables(board)},
        "annotations": {"list": []},
        "links": [],
        "panels": panels,
    }


def make_panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    """One panel; its queries are lettered."""
    source = {"type": "prometheus", "uid": "${datasource}"}
    is_now = panel.kind != "timeseries"
    made: dict[str, Any] = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.text,
        "datasource": source,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": None}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": source,
                "expr": query,
                "legendFormat": legend or "__auto",
                "instant": is_now,
                "range": not is_now,
            }
            for index, (legend, query) in enumerate(panel.queries.items())
        ],
    }
    if is_now:
        made["options"] = {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "orientation": "horizontal",
        }
    else:
        made["options"] = {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    return made


def make_variables(board: Board) -> list[dict[str, Any]]:
    """The data source, the job, the servers, and for groups the group."""
    variables: list[dict[str, Any]] = [
        {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "query": "prometheus",
            "refresh": 1,
            "hide": 0,
        },
        _make_query("job", "Job", "label_values(muster_build_info, job)"),
        _make_query("instance", "Server", 'label_values(muster_build_info{job=~"$job"}, instance)'),
    ]
    if board.has_group:
        found = f"label_values(muster_group_epoch{{{OF_SERVER}}}, group)"
        variables.append(_make_query("group", "Group", found))
    return variables


def _make_query(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "hide": 0,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if a file differs")
    check = parser.parse_args().check
    for board in BOARDS:
        path = FOLDER / f"{board.uid}.json"
        text = json.dumps(make_board(board), indent=2) + "\n"
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path.name} is not what tools/generate_boards.py writes", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
