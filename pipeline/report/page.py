"""The page: one HTML document with inline styles and charts, and no requests.

A content security policy in the document forbids requests, and all scripts but the page's own. That
is for search, sorting and the choice of groups: without it everything is there, group after group.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from pathlib import Path

from pipeline.report.elements import name_group, show_section
from pipeline.report.figures import Report
from pipeline.report.scales import show_count, show_duration, show_time
from pipeline.report.sections.findings_sections import show_audit, show_readiness
from pipeline.report.sections.group_sections import number_groups, show_groups
from pipeline.report.sections.offset_sections import show_expiry, show_lag
from pipeline.report.sections.rebalance_sections import (
    show_busiest,
    show_convergence,
    show_rebalances,
    show_slowest,
)
from pipeline.report.svg import element, escape

_STYLE = Path(__file__).parent / "page.css"
_SCRIPT = Path(__file__).parent / "page.js"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def make_page(report: Report, made: datetime, version: str) -> str:
    """The whole document; ``made`` is its time in UTC, ``version`` that of Muster."""
    anchors = number_groups(report.details, report.lanes)
    sections = (
        show_rebalances(report.series),
        show_convergence(report.convergence),
        show_busiest(report.busiest, report.convergence, anchors),
        show_slowest(report.slowest, report.convergence, anchors),
        show_groups(report.details, report.lanes, report.unknown_groups, anchors),
        show_lag(report.lag),
        show_expiry(report.expiry),
        show_readiness(report.readiness),
        show_audit(report.audit),
    )
    script = _SCRIPT.read_text(encoding="utf-8")
    policy = f"{_POLICY}; script-src '{compute_hash(script)}'"
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
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
        f"<script>{script}</script>",
    ]
    return (
        "<!doctype html>\n"
        + element("html", element("head", *head), element("body", *body), lang="en")
        + "\n"
    )


def compute_hash(script: str) -> str:
    """How a content security policy names an inline script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


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
        ("Groups at the end", show_count(groups), kinds or "none"),
        ("Records", show_count(facts.records), f"{show_count(facts.commits)} of offsets"),
        (
            "Rebalances",
            show_count(report.series.total),
            f"in {_count_busy(report)} groups, deleted ones included",
        ),
    ]
    percentiles = convergence.percentiles_ms
    if percentiles:
        tiles.append(
            (
                "To converge",
                show_duration(percentiles.get("p50")) if percentiles.get("p50") else "at once",
                f"median; 99th percentile {show_duration(percentiles.get('p99'))}",
            )
        )
    tiles.append(
        (
            "Never converged",
            show_count(convergence.never),
            "the group became empty first, or the log ends before",
        )
    )
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
