"""Where a reset sets offsets, as people say it; and the request after a preview."""

from __future__ import annotations

import pytest

from muster.v1 import reset_pb2
from wording.errors import InputError
from wording.resets import PlanText, Strategy, make_second_request, parse_plan

HOUR_MS = 3_600_000


def now_ms() -> int:
    return 10 * HOUR_MS


@pytest.mark.parametrize(
    ("strategy", "field", "value"),
    [
        (Strategy(to_earliest=True), "position", reset_pb2.RESET_POSITION_EARLIEST),
        (Strategy(to_datetime="1h"), "timestamp_ms", 9 * HOUR_MS),
        (Strategy(by_duration="PT2H"), "timestamp_ms", 8 * HOUR_MS),
        (Strategy(shift_by=-3), "shift_by", -3),
        (Strategy(to_offset=0), "offset", 0),
        (Strategy(to_group="other"), "other_group_id", "other"),
    ],
    ids=lambda given: str(given)[:40],
)
def test_a_strategy_is_a_field_of_the_request(
    strategy: Strategy, field: str, value: object
) -> None:
    request = reset_pb2.ResetOffsetsRequest(group_id="g")
    strategy.fill(request, now_ms)
    assert (request.WhichOneof("to"), getattr(request, field)) == (field, value)


@pytest.mark.parametrize(
    "strategy", [Strategy(), Strategy(to_latest=True, to_offset=1), Strategy(to_offset=1 << 64)]
)
def test_a_strategy_that_says_nothing_or_too_much_is_refused(strategy: Strategy) -> None:
    with pytest.raises(InputError):
        strategy.fill(reset_pb2.ResetOffsetsRequest(group_id="g"), now_ms)


def test_a_plan_is_of_one_group() -> None:
    plan = parse_plan(PlanText("p", "g,t,1,5\nh,t,2,6\nt,3,7\n"), "g")
    assert [(row.partition, row.offset) for row in plan.topics[0].partitions] == [(1, 5), (3, 7)]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("t,0", "p:1: write topic,partition,offset"),
        ("t,0,1\nt,0,2", "p:2: t-0 is given twice"),
        ("h,t,0,1", "p has no offsets of group g"),
        ("t,0,٣", "p:1: write"),
    ],
)
def test_what_is_wrong_with_a_plan_is_said(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        parse_plan(PlanText("p", text), "g")


def test_the_second_request_sets_what_the_preview_has_shown() -> None:
    first = reset_pb2.ResetOffsetsRequest(
        group_id="g", shift_by=2, clamp=True, validate_only=True, create_group=True
    )
    shown = reset_pb2.ResetOffsetsResponse(preview="P")
    for topic, partition, offset in (("a", 0, 4), ("b", 0, 5), ("a", 1, 6)):
        shown.partitions.add(topic_name=topic, partition=partition, offset_after=offset)
    second = make_second_request(first, shown, "id")
    assert not second.validate_only
    assert (second.clamp, second.create_group) == (True, True)
    assert (second.preview, second.request_id) == ("P", "id")
    assert [
        (topic.topic_name, [(row.partition, row.offset) for row in topic.partitions])
        for topic in second.plan.topics
    ] == [("a", [(0, 4), (1, 6)]), ("b", [(0, 5)])]


def test_an_undo_is_of_the_change_that_was_shown() -> None:
    first = reset_pb2.ResetOffsetsRequest(
        group_id="g", validate_only=True, undo=reset_pb2.UndoChange()
    )
    first.topics.add(topic_name="a", partitions=[1])
    shown = reset_pb2.ResetOffsetsResponse(
        preview="P", undone=reset_pb2.OffsetChange(log_offset=71)
    )
    second = make_second_request(first, shown, "id")
    assert (second.undo.log_offset, second.preview, second.validate_only) == (71, "P", False)
    assert [list(topic.partitions) for topic in second.topics] == [[1]]
