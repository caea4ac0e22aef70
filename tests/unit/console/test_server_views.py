"""The pages of the cluster and of its health: what is bad is said, with what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.facts import Counts, Disk, LogPartition, ServerFacts, Times
from console.views.cluster_view import compute_cluster_view
from console.views.health_view import (
    Status,
    compute_health_view,
    compute_quantile_s,
    compute_times_row,
    render_bytes,
)
from muster.v1 import upstream_pb2

GIB = 1 << 30
DAY_S = 86_400
FINE = ServerFacts(
    "a-cluster", 1, 77, 0, True,
    log_partitions=(LogPartition(0, 5, True, False), LogPartition(1, 0, True, False)),
    disk=Disk(free_bytes=100 * GIB, min_free_bytes=GIB),
    certificates={"grpc": 100 * DAY_S},
)  # fmt: skip
STOPPED = LogPartition(1, 3, True, True)


def find(facts: ServerFacts, key: str) -> tuple[Status, str, str]:
    checks = {check.key: check for check in compute_health_view(facts, 0).checks}
    check = checks[key]
    return check.status, check.value, check.advice


def test_a_server_that_is_well_has_nothing_to_do() -> None:
    view = compute_health_view(FINE, 0)
    assert view.status is Status.FINE
    assert not [check for check in view.checks if check.advice]


@pytest.mark.parametrize(
    ("facts", "key", "status"),
    [
        (replace(FINE, is_ready=False), "ready", Status.LOOK),
        (replace(FINE, log_partitions=(STOPPED,)), "stopped", Status.BAD),
        (replace(FINE, counts=Counts(invariant_violations=1)), "violations", Status.BAD),
        (replace(FINE, counts=Counts(audit_lines_left_out=1)), "audit", Status.LOOK),
        (replace(FINE, counts=Counts(writes_refused=1)), "refused", Status.LOOK),
        (replace(FINE, counts=Counts(history_partitions_left=1)), "untrimmed", Status.BAD),
        (replace(FINE, disk=Disk(free_bytes=5, min_free_bytes=6)), "disk", Status.BAD),
        (replace(FINE, disk=Disk(free_bytes=11, min_free_bytes=6)), "disk", Status.LOOK),
        (replace(FINE, certificates={"grpc": 13 * DAY_S}), "certificate-grpc", Status.LOOK),
        (replace(FINE, certificates={"grpc": 0}), "certificate-grpc", Status.BAD),
        (replace(FINE, flushes=Times((0.1, 0.5), (98, 2, 0), 9.0)), "flush", Status.LOOK),
        (replace(FINE, loop=Times((0.05, 0.5), (98, 0, 2), 9.0)), "loop", Status.LOOK),
    ],
)
def test_what_is_not_well_says_what_to_do(facts: ServerFacts, key: str, status: Status) -> None:
    found, _, advice = find(facts, key)
    assert found is status
    assert advice
    assert compute_health_view(facts, 0).status is status


@pytest.mark.parametrize(
    ("share", "bound"), [(0.5, 0.1), (0.9, 0.1), (0.91, 0.5), (1.0, float("inf"))]
)
def test_a_quantile_is_the_bound_that_it_lies_within(share: float, bound: float) -> None:
    assert compute_quantile_s(Times((0.1, 0.5), (90, 9, 1), 0), share) == bound


def test_no_times_have_no_quantile() -> None:
    assert compute_quantile_s(Times(), 0.5) is None
    row = compute_times_row("Syncs", Times())
    assert (row.count, row.mean, row.p99) == (0, "-", "-")
    some = compute_times_row("Syncs", Times((0.00025, 0.5), (1, 1, 0), 0.5))
    assert (some.mean, some.median, some.longest) == ("250 ms", "≤ 250 µs", "≤ 500 ms")


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1_023, "1023 B"), (1_024, "1 KiB"), (1_536 << 20, "1.5 GiB")]
)
def test_bytes_in_words(count: int, text: str) -> None:
    assert render_bytes(count) == text


def test_the_cluster_has_its_partitions_and_what_is_behind() -> None:
    facts = replace(FINE, log_partitions=(*FINE.log_partitions, replace(STOPPED, number=2)))
    behind = upstream_pb2.GetUpstreamResponse(
        cluster_id="kafka",
        fault="no broker answers",
        brokers=[upstream_pb2.UpstreamBroker(node_id=3, address="k:9092")],
    )
    view = compute_cluster_view(facts, behind, 4, {"muster": "1"}, 61_000)
    assert view.facts["Started"] == "1970-01-01T00:00:00.000Z, 1 m 1 s ago"
    assert view.facts["Open transactions"] == "4"
    assert view.stopped == 1
    assert [row.is_bad for row in view.partitions] == [False, False, True]
    assert view.upstream is not None
    assert view.upstream.fault == "no broker answers"
    assert view.upstream.brokers[0].cells == ("3", "k:9092", "-", "none yet")
    assert compute_cluster_view(FINE, None, 0, {}, 0).upstream is None
