"""Swim lanes of a group's partitions, as they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from console.charts.lanes import (
    Kind,
    LaneChart,
    Scale,
    Stretch,
    Tick,
    compute_boxes,
    compute_color,
    compute_height,
    compute_pattern,
    compute_ticks,
    compute_y,
)
from muster.v1 import history_pb2
from wording.times import render_span, render_time

_DAY_MS: Final = 86_400_000
_SAID: Final = {
    Kind.OWNED: "{owner}",
    Kind.WITHHELD: "{owner}, which is to give it to {target}",
    Kind.GAP: "nobody; {target} is to get it",
}


@dataclass(frozen=True, slots=True)
class Owner:
    """A member in the legend."""

    label: str
    color: int
    pattern: int
    member_id: str
    client_id: str
    client_host: str
    instance_id: str


class Change(NamedTuple):
    """A moment at which the group changed."""

    offset: int
    at: str
    epoch: int
    members: int
    moved: int


@dataclass(frozen=True, slots=True)
class LanesView:
    """The lanes of a page. ``mark`` is where the position that is looked at lies, -1 if outside."""

    begin: str
    end: str
    owners: Sequence[Owner]
    lanes: Sequence[LaneChart]
    ticks: Sequence[Tick]
    height: int
    mark: float
    changes: Sequence[Change]
    changes_count: int
    is_cut: bool


CHANGES_SHOWN: Final = 100


def compute_lanes_view(
    answer: history_pb2.ListOwnershipsResponse,
    since_ms: int,
    until_ms: int,
    at_ms: int | None = None,
) -> LanesView:
    """The lanes of an answer about this time; 0 for as far back as it tells."""
    moments = answer.moments
    told_ms = answer.begin.timestamp_ms if answer.begin.HasField("timestamp_ms") else 0
    scale = _make_scale(answer, max(since_ms, told_ms), until_ms)
    labels = [str(number + 1) for number in range(len(answer.members))]
    names = [_name(each, label) for each, label in zip(answer.members, labels, strict=True)]
    lanes: list[LaneChart] = []
    for topic in answer.topics:
        for lane in topic.partitions:
            stretches = compute_stretches(lane, moments, scale)
            says = [_say(each, names) for each in stretches]
            lanes.append(
                LaneChart(
                    compute_y(len(lanes)),
                    f"{topic.topic_name or topic.topic_id.hex()}-{lane.partition}",
                    compute_boxes(stretches, scale, labels, says),
                )
            )
    is_inside = at_ms is not None and scale.begin_ms <= at_ms <= scale.end_ms
    return LanesView(
        render_time(scale.begin_ms),
        render_time(scale.end_ms),
        [_make_owner(each, number) for number, each in enumerate(answer.members)],
        lanes,
        compute_ticks(scale, _make_render(scale)),
        compute_height(len(lanes)),
        scale.find_x(at_ms) if at_ms is not None and is_inside else -1.0,
        [_make_change(each) for each in moments[-CHANGES_SHOWN:]][::-1],
        len(moments),
        bool(since_ms) and told_ms > since_ms,
    )


def _make_scale(answer: history_pb2.ListOwnershipsResponse, begin_ms: int, until_ms: int) -> Scale:
    """From the first change on, if there was nothing before it."""
    lanes = (lane for topic in answer.topics for lane in topic.partitions)
    is_new = not any(lane.spans and not lane.spans[0].HasField("moment") for lane in lanes)
    if is_new and answer.moments:
        first_ms = answer.moments[0].timestamp_ms
        begin_ms = max(begin_ms, first_ms - (until_ms - first_ms) // 50)
    begin_ms = begin_ms or until_ms
    return Scale(begin_ms, max(until_ms, begin_ms + 1))


def compute_stretches(
    lane: history_pb2.PartitionLane, moments: Sequence[history_pb2.GroupMoment], scale: Scale
) -> list[Stretch]:
    """What a partition was, one after the other; nothing where it was nobody's to have."""
    stretches = []
    spans = lane.spans
    for number, span in enumerate(spans):
        begin_ms = moments[span.moment].timestamp_ms if span.HasField("moment") else scale.begin_ms
        is_last = number + 1 == len(spans)
        end_ms = scale.end_ms if is_last else moments[spans[number + 1].moment].timestamp_ms
        owner = span.owner if span.HasField("owner") else -1
        target = span.target if span.HasField("target") else -1
        if end_ms <= scale.begin_ms or ((owner, target) == (-1, -1) and is_last):
            continue
        if owner < 0:
            kind = Kind.GAP
        elif owner != target or span.is_revoking:
            kind = Kind.WITHHELD
        else:
            kind = Kind.OWNED
        stretches.append(Stretch(begin_ms, end_ms, owner, target, kind))
    return stretches


def _name(member: history_pb2.OwningMember, label: str) -> str:
    client = f" ({member.client_id})" if member.client_id else ""
    return f"{label}: {member.member_id}{client}"


def _say(stretch: Stretch, names: Sequence[str]) -> str:
    owner = names[stretch.owner] if stretch.owner >= 0 else "nobody"
    target = names[stretch.target] if stretch.target >= 0 else "nobody"
    took = render_span(max(stretch.end_ms - stretch.begin_ms, 0))
    said = _SAID[stretch.kind].format(owner=owner, target=target)
    return f"{said}; from {render_time(stretch.begin_ms)}, {took}"


def _make_owner(member: history_pb2.OwningMember, number: int) -> Owner:
    return Owner(
        str(number + 1),
        compute_color(number),
        compute_pattern(number),
        member.member_id,
        member.client_id,
        member.client_host,
        member.instance_id,
    )


def _make_change(moment: history_pb2.GroupMoment) -> Change:
    return Change(
        moment.log_offset,
        render_time(moment.timestamp_ms),
        moment.group_epoch,
        moment.members,
        moment.partitions_changed,
    )


def _make_render(scale: Scale) -> _Clock:
    return _Clock(scale.end_ms - scale.begin_ms > _DAY_MS)


class _Clock:
    """Writes a time as short as the length of the chart allows."""

    def __init__(self, is_long: bool) -> None:
        self._is_long = is_long

    def __call__(self, at_ms: int) -> str:
        text = render_time(at_ms)
        return text[5:16].replace("T", " ") if self._is_long else text[11:19]
