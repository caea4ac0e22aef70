"""The page: one HTML document with inline styles and charts, no scripts and no requests.

A content security policy in the document forbids requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from pipeline.report.charts import ChartText, draw_lanes, draw_legend, name_letter
from pipeline.report.elements import Section, make_table, name_group, show_section
from pipeline.report.figures import Lanes, Report
from pipeline.report.offset_sections import show_expiry, show_lag
from pipeline.report.rebalance_sections import (
    show_busiest,
    show_convergence,
    show_rebalances,
    show_slowest,
)
from pipeline.report.scales import show_count, show_duration, show_time
from pipeline.report.svg import element, escape

_STYLE = Path(__file__).parent / "page.css"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_LEGEND_MEMBERS = 12


def make_page(report: Report, made: datetime, version: str) -> str:
    """The whole document; ``made`` is its time in UTC, ``version`` that of Muster."""
    sections = (
        show_rebalances(report.series),
        show_convergence(report.convergence),
        show_busiest(report.busiest, report.convergence),
        show_slowest(report.slowest, report.convergence),
        _show_owners(report.lanes, report.unknown_groups),
        show_lag(report.lag),
        show_expiry(report.expiry),
    )
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        # Browsers request a favicon otherwise.
        '<link rel="icon" href="data:,">',
        element("title", "Consumer groups: what the log says"),
        element("style", _STYLE.read_text(encoding="utf-8")),
    ]
    links = [
        element("li", element("a", escape(section.title), href=f"#{section.name}"))
        for section in sections
    ]
    body = [
        element(
            "header",
            *_show_head(report),
            element("nav", element("ul", *links), aria_label="Sections"),
        ),
        element("main", *map(show_section, sections)),
        element(
            "footer",
            f"Made {made:%Y-%m-%d %H:%M} UTC by Muster {escape(version)}. All times are UTC. "
            "Below each chart is a table of its figures; hover over a mark for its values.",
        ),
    ]
    return (
        "<!doctype html>\n"
        + element("html", element("head", *head), element("body", *body), lang="en")
        + "\n"
    )


def _show_head(report: Report) -> list[str]:
    facts = report.facts
    span = "It has no records."
    if facts.start_ms is not None and facts.end_ms is not None:
        span = (
            f"{show_time(facts.start_ms)} to {show_time(facts.end_ms)} UTC, "
            f"{show_duration(facts.end_ms - facts.start_ms)}."
        )
    head = [
        element("h1", "Consumer groups: what the log says"),
        element("p", element("code", escape(facts.path), class_="path")),
        element("p", span, class_="quiet"),
    ]
    if facts.problems:
        counts = ", ".join(f"{name} {count:,}" for name, count in sorted(facts.problems.items()))
        head.append(
            element(
                "p",
                f"Unreadable parts of the log are not in these figures: {escape(counts)}.",
                class_="warn",
            )
        )
    return [*head, _show_tiles(report)]


def _show_tiles(report: Report) -> str:
    facts, convergence = report.facts, report.convergence
    groups = sum(facts.groups.values())
    kinds = ", ".join(f"{show_count(count)} {name}" for name, count in facts.groups.items())
    tiles = [
        ("Groups", show_count(groups), kinds or "none"),
        ("Records", show_count(facts.records), f"{show_count(facts.commits)} of offsets"),
        ("Rebalances", show_count(report.series.total), f"in {_count_busy(report)} groups"),
    ]
    percentiles = convergence.percentiles_ms
    if percentiles:
        tiles.append(
            (
                "To converge",
                show_duration(percentiles.get("p50")),
                f"median; 99th percentile {show_duration(percentiles.get('p99'))}",
            )
        )
    tiles.append(("Never converged", show_count(convergence.never), "of consumer groups"))
    if report.lag is not None and report.lag.groups:
        furthest = max(report.lag.groups, key=lambda group: group.lag_s or 0)
        behind_ms = None if furthest.lag_s is None else furthest.lag_s * 1000
        tiles.append(("Furthest behind", show_duration(behind_ms), name_group(furthest.group_id)))
    if report.expiry is not None:
        expiry = report.expiry
        tiles.append(
            (
                "Expire in a day",
                show_count(expiry.within_day),
                f"of {show_count(expiry.offsets)} offsets",
            )
        )
    shown = [
        element(
            "div",
            element("dt", escape(name)),
            element("dd", escape(value), element("small", escape(note))),
        )
        for name, value, note in tiles
    ]
    return element("dl", *shown, class_="tiles")


def _count_busy(report: Report) -> str:
    return show_count(len(report.busiest.groups) + report.busiest.other_groups)


def _show_owners(groups: Sequence[Lanes], unknown: Sequence[str]) -> Section:
    intro = (
        "A lane is a partition, a bar the time for which one member owned it, a gap a time without "
        "an owner. Marks above the lanes are rebalances."
    )
    content = [
        element("p", escape(f"No member of {name_group(name)} owned a partition."))
        for name in unknown
    ]
    for number, lanes in enumerate(groups):
        content += [
            element("h3", element("bdi", escape(name_group(lanes.group_id)))),
            *_show_lanes(number, lanes),
        ]
    if not content:
        content = [element("p", "No member of any group owned a partition.", class_="quiet")]
    return Section("owners", "Partition owners", intro, content)


def _show_lanes(number: int, lanes: Lanes) -> list[str]:
    words = ChartText(
        f"lanes-{number}",
        f"Owners of the partitions of {lanes.group_id}",
        f"{len(lanes.lanes)} partitions and {len(lanes.members)} members that owned them "
        f"from {show_time(lanes.start_ms)} to {show_time(lanes.end_ms)}.",
        "partition",
    )
    names = [f"{name_letter(i)} {member}" for i, member in enumerate(lanes.members)]
    notes = []
    if len(names) > _LEGEND_MEMBERS:
        notes.append(f"{len(names) - _LEGEND_MEMBERS:,} more members are in the table.")
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
            f"{name_letter(stay.member)} {lanes.members[stay.member]}",
            stay.epoch,
            show_time(stay.from_ms),
            show_time(stay.to_ms),
        )
        for lane in lanes.lanes
        for stay in lane.stays
    ]
    table = make_table(
        f"Owners of the partitions of {lanes.group_id}",
        ("Topic", "Partition", "Member", "Epoch", "From", "To"),
        rows,
        numeric=(1, 3),
    )
    shown = [draw_legend(names[:_LEGEND_MEMBERS]), draw_lanes(words, lanes)]
    if notes:
        shown.append(element("p", escape(" ".join(notes)), class_="quiet"))
    return [*shown, table]
