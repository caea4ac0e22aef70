"""The section about single groups: their rebalances, and the owners of their partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pipeline.report.charts import ChartText, draw_lanes, draw_letters, name_letter
from pipeline.report.elements import Section, make_cell, make_table, name_group, wrap_table
from pipeline.report.figures import GroupDetails, Lanes, Member, OneRebalance
from pipeline.report.reasons import CAUSE_WORDS
from pipeline.report.scales import show_count, show_duration, show_time
from pipeline.report.svg import element, escape

_INTRO = (
    "The last rebalances of each group named above, and who owned its partitions: a lane is a "
    "partition, a bar the time for which one member owned it, a gap a time without an owner. Marks "
    "above the lanes are rebalances."
)
_COLUMNS = ("Began", "Epoch", "Cause", "Client", "Partitions moved", "Members", "Took")
_ID_SHOWN = 8
_ANCHOR = "group-{}"


def number_groups(details: Sequence[GroupDetails], lanes: Sequence[Lanes]) -> dict[str, str]:
    """The anchor of each group that the section shows; names of groups are no ids of a page."""
    named = [*(each.group_id for each in details), *(each.group_id for each in lanes)]
    return {
        group_id: _ANCHOR.format(number) for number, group_id in enumerate(dict.fromkeys(named))
    }


def show_groups(
    details: Sequence[GroupDetails],
    lanes: Sequence[Lanes],
    unknown: Sequence[str],
    anchors: Mapping[str, str],
) -> Section:
    """A part for each group, which is opened by the links to it."""
    content = [
        element("p", escape(f"No member of {name_group(name)} owned a partition."))
        for name in unknown
    ]
    by_group = {each.group_id: each for each in details}
    owned = {each.group_id: each for each in lanes}
    for group_id, anchor in anchors.items():
        content.append(_show_group(group_id, anchor, by_group.get(group_id), owned.get(group_id)))
    if not anchors and not unknown:
        content = [element("p", "No group rebalanced, and none owned a partition.", class_="quiet")]
    return Section("groups", "Groups, one by one", _INTRO, content)


def _show_group(
    group_id: str, anchor: str, details: GroupDetails | None, lanes: Lanes | None
) -> str:
    parts = []
    if details is not None:
        parts.append(f"{show_count(len(details.rebalances) + details.earlier)} rebalances")
    if lanes is not None:
        parts.append(f"{show_count(len(lanes.lanes) + lanes.other_lanes)} partitions")
    summary = element(
        "summary",
        element("bdi", escape(name_group(group_id))),
        element("span", escape(f" {', '.join(parts)}"), class_="quiet"),
    )
    content = [] if lanes is None else _show_lanes(anchor, lanes)
    if details is not None:
        content += _show_rebalances(details)
    is_open = "" if anchor == _ANCHOR.format(0) else None
    return element("details", summary, *content, id=anchor, class_="group", open=is_open)


def _show_rebalances(details: GroupDetails) -> list[str]:
    rows = [element("tr", *_show_rebalance(each)) for each in details.rebalances]
    if details.earlier:
        rest = f"{show_count(details.earlier)} earlier rebalances are in the table rebalances."
        rows.append(element("tr", element("td", rest, colspan=len(_COLUMNS)), class_="rest"))
    caption = f"Rebalances of {name_group(details.group_id)}, the last one first"
    return [wrap_table(caption, _COLUMNS, rows, numeric=(5, 6))]


def _show_rebalance(one: OneRebalance) -> list[str]:
    before = "–" if one.from_epoch is None else str(one.from_epoch)
    named = ", ".join(one.moved)
    if one.partitions_moved > len(one.moved):
        named = f"{named} …" if named else ""
    moved = element("td", show_count(one.partitions_moved))
    if named:
        moved = element(
            "td",
            show_count(one.partitions_moved),
            element("div", escape(named), class_="quiet"),
        )
    took = show_duration(one.duration_ms)
    if one.duration_ms is None:
        took = "not converged" if one.is_timed else "–"
    return [
        make_cell("–" if one.at_ms is None else show_time(one.at_ms)),
        make_cell(f"{before} → {one.to_epoch}"),
        make_cell(CAUSE_WORDS.get(one.cause, one.cause)),
        _show_member(one.member),
        moved,
        make_cell(one.members_moved, is_number=True),
        make_cell(took, is_number=True),
    ]


def _show_member(member: Member | None) -> str:
    if member is None:
        return make_cell(None)
    if not member.client_id:
        return element("td", element("bdi", escape(member.member_id)))
    name = element("bdi", escape(member.client_id))
    return element("td", name, title=member.member_id, class_="why")


def name_clients(members: Sequence[Member]) -> list[str]:
    """What each member is called: its client id, with the end of its own id if others have it."""
    counts = Counter(member.client_id for member in members)
    return [
        member.name
        if counts[member.client_id] == 1 or not member.client_id
        else f"{member.client_id} …{member.member_id[-_ID_SHOWN:]}"
        for member in members
    ]


def _show_lanes(anchor: str, lanes: Lanes) -> list[str]:
    words = ChartText(
        f"{anchor}-lanes",
        f"Owners of the partitions of {lanes.group_id}",
        f"{len(lanes.lanes)} partitions and {len(lanes.members)} members that owned them "
        f"from {show_time(lanes.start_ms)} to {show_time(lanes.end_ms)}.",
        "partition",
    )
    names = name_clients(lanes.members)
    legend = [
        (number, name, member.member_id)
        for number, (name, member) in enumerate(zip(names, lanes.members, strict=True))
    ]
    notes = []
    if lanes.other_lanes:
        notes.append(f"{lanes.other_lanes:,} more partitions are left out.")
    if lanes.earlier_stays:
        notes.append(
            f"Starts at {show_time(lanes.start_ms)}; {lanes.earlier_stays:,} earlier intervals "
            "are left out."
        )
    rows = [
        (
            lane.topic,
            lane.partition,
            f"{name_letter(stay.member)} {names[stay.member]}",
            lanes.members[stay.member].member_id,
            stay.epoch,
            show_time(stay.from_ms),
            show_time(stay.to_ms),
        )
        for lane in lanes.lanes
        for stay in lane.stays
    ]
    table = make_table(
        f"Owners of the partitions of {lanes.group_id}",
        ("Topic", "Partition", "Client", "Member", "Epoch", "From", "To"),
        rows,
        numeric=(1, 4),
    )
    shown = [draw_letters(legend), draw_lanes(words, lanes, names)]
    if notes:
        shown.append(element("p", escape(" ".join(notes)), class_="quiet"))
    return [*shown, table]
