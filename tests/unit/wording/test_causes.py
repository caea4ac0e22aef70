"""Causes of rebalances in words."""

from __future__ import annotations

import pytest

from cli.admin.ledger.ledger_listing import render_cause
from muster.v1 import explain_pb2
from muster.v1.explain_pb2 import RebalanceCause
from wording.causes import describe_cause
from wording.times import render_span

MEMBER = {"member_id": "m", "client_id": "c", "client_host": "/10.0.0.1", "instance_id": "i"}


@pytest.mark.parametrize("cause", RebalanceCause.values()[1:])
def test_each_cause_has_words(cause: RebalanceCause) -> None:
    rebalance = explain_pb2.Rebalance(cause=cause, causes=1, topic_name="t", **MEMBER)
    said = describe_cause(rebalance)
    assert "not known" not in said
    assert "member m (client c, instance i, host /10.0.0.1)" in said


def test_what_the_client_said_and_when_it_was_last_heard() -> None:
    rebalance = explain_pb2.Rebalance(
        cause=explain_pb2.REBALANCE_CAUSE_SESSION_EXPIRED,
        causes=3,
        member_id="m",
        heartbeat_age_ms=45_012,
        reason="why",
    )
    assert describe_cause(rebalance) == (
        "member m was not heard for its session timeout, and 2 more, "
        "45.0 s after it was last heard: why"
    )


def test_a_cause_of_a_later_version() -> None:
    rebalance = explain_pb2.Rebalance()
    rebalance.MergeFromString(b"\x28\x63")
    assert describe_cause(rebalance) == "the cause is not known to this version"
    assert render_cause(rebalance.cause) == "unknown"


@pytest.mark.parametrize(
    ("span_ms", "said"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (59_999, "60.0 s"),
        (60_000, "1 m 0 s"),
        (187_500, "3 m 7 s"),
        (7_500_000, "2 h 5 m"),
        (273_600_000, "3 d 4 h"),
    ],
)
def test_spans_of_time(span_ms: int, said: str) -> None:
    assert render_span(span_ms) == said
