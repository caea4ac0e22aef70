"""Swim lanes: what a partition was, when, as boxes."""

from __future__ import annotations

from console.charts.lanes import (
    COLORS,
    PATTERNS,
    WIDTH,
    Kind,
    Scale,
    Stretch,
    compute_boxes,
    compute_color,
    compute_pattern,
)
from console.views.lanes_view import compute_lanes_view, compute_stretches
from muster.v1 import history_pb2, types_pb2

_Span = history_pb2.OwnershipSpan


def make_answer(*spans: history_pb2.OwnershipSpan) -> history_pb2.ListOwnershipsResponse:
    return history_pb2.ListOwnershipsResponse(
        begin=types_pb2.LogPosition(timestamp_ms=1_000),
        members=[
            history_pb2.OwningMember(member_id="m-1", client_id="one"),
            history_pb2.OwningMember(member_id="m-2"),
        ],
        moments=[
            history_pb2.GroupMoment(log_offset=number, timestamp_ms=number * 1_000)
            for number in (2, 3, 4)
        ],
        topics=[
            history_pb2.TopicLanes(
                topic_name="t",
                partitions=[history_pb2.PartitionLane(partition=7, spans=spans)],
            )
        ],
    )


SPANS = (
    _Span(owner=0, target=0),
    _Span(moment=0, owner=0, target=1, is_revoking=True),
    _Span(moment=1, target=1),
    _Span(moment=2, owner=1, target=1),
)


def test_an_owner_keeps_it_gives_it_up_and_another_gets_it() -> None:
    answer = make_answer(*SPANS)
    lane = answer.topics[0].partitions[0]
    assert compute_stretches(lane, answer.moments, Scale(1_000, 5_000)) == [
        Stretch(1_000, 2_000, 0, 0, Kind.OWNED),
        Stretch(2_000, 3_000, 0, 1, Kind.WITHHELD),
        Stretch(3_000, 4_000, -1, 1, Kind.GAP),
        Stretch(4_000, 5_000, 1, 1, Kind.OWNED),
    ]
    view = compute_lanes_view(answer, 0, 5_000, at_ms=3_000)
    (chart,) = view.lanes
    assert chart.label == "t-7"
    assert [(box.kind, box.text) for box in chart.boxes] == [
        ("owned", "1"),
        ("withheld", "1 → 2"),
        ("gap", "nobody"),
        ("owned", "2"),
    ]
    assert [box.x for box in chart.boxes] == [0, WIDTH / 4, WIDTH / 2, WIDTH * 3 / 4]
    assert sum(box.width for box in chart.boxes) == WIDTH
    assert "1: m-1 (one), which is to give it to 2: m-2" in chart.boxes[1].about
    assert "1.0 s" in chart.boxes[1].about
    assert view.mark == WIDTH / 2
    assert [owner.client_id for owner in view.owners] == ["one", ""]


def test_what_nobody_is_to_have_in_the_end_ends() -> None:
    answer = make_answer(_Span(owner=0, target=0), _Span(moment=0))
    lane = answer.topics[0].partitions[0]
    stretches = compute_stretches(lane, answer.moments, Scale(1_000, 5_000))
    assert [each.kind for each in stretches] == [Kind.OWNED]


def test_the_chart_begins_where_the_history_does() -> None:
    answer = make_answer(*SPANS)
    assert compute_lanes_view(answer, 500, 5_000).is_cut
    assert not compute_lanes_view(answer, 1_500, 5_000).is_cut
    assert compute_lanes_view(answer, 500, 5_000).begin == "1970-01-01T00:00:01.000Z"
    empty = compute_lanes_view(history_pb2.ListOwnershipsResponse(), 0, 5_000)
    assert (empty.lanes, empty.mark) == ([], -1.0)


def test_what_lasts_no_time_is_still_seen_and_stays_inside() -> None:
    stretch = Stretch(5_000, 5_000, 0, 0, Kind.OWNED)
    (box,) = compute_boxes([stretch], Scale(0, 5_000), ["1"], ["said"])
    assert (box.x, box.width, box.text) == (WIDTH - 1, 1.0, "")


def test_owners_differ_by_color_and_pattern() -> None:
    looks = {(compute_color(n), compute_pattern(n)) for n in range(COLORS * PATTERNS)}
    assert len(looks) == COLORS * PATTERNS


def test_what_ended_before_the_chart_begins_is_not_on_it() -> None:
    answer = make_answer(*SPANS)
    lane = answer.topics[0].partitions[0]
    stretches = compute_stretches(lane, answer.moments, Scale(3_000, 5_000))
    assert [each.kind for each in stretches] == [Kind.GAP, Kind.OWNED]
