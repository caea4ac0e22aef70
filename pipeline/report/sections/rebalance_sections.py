"""The sections about rebalances: how many, how long, which groups and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from pipeline.report.charts import (
    ChartText,
    draw_bars,
    draw_histogram,
    draw_lines,
    draw_spark,
    make_duration_axis,
)
from pipeline.report.elements import Section, make_cell, make_head_cell, make_table, wrap_table
from pipeline.report.figures import BusyGroup, Convergence, Ranking, RebalanceSeries
from pipeline.report.reasons import CAUSE_WORDS, explain_busy
from pipeline.report.scales import (
    show_count,
    show_duration,
    show_short,
    show_time,
)
from pipeline.report.svg import element, escape

_PERCENTILES = {
    "p50": "median",
    "p95": "95th percentile",
    "p99": "99th percentile",
    "max": "longest",
}
_NOTHING = element("p", "There were none.", class_="quiet")


def show_rebalances(series: RebalanceSeries) -> Section:
    """The number of rebalances over time, by cause."""
    window = show_duration(series.window_ms)
    intro = (
        "Target assignments of consumer groups and generations of classic groups, by the cause "
        "that the records show."
    )
    named = {CAUSE_WORDS.get(cause, cause): counts for cause, counts in series.by_cause.items()}
    if not series.total:
        return Section("rebalances", "Rebalances over time", intro, [_NOTHING])
    totals = [sum(counts) for counts in zip(*named.values(), strict=True)]
    most = max(totals)
    words = ChartText(
        "rebalances-chart",
        "Rebalances over time by cause",
        f"{show_count(series.total)} rebalances in {len(totals)} windows of {window}; the most in "
        f"one were {show_count(most)}, from "
        f"{show_time(series.start_ms + totals.index(most) * series.window_ms)} on.",
        f"rebalances in {window}",
    )
    rows = [
        (show_time(series.start_ms + i * series.window_ms), *counts)
        for i, counts in enumerate(zip(*named.values(), strict=True))
    ]
    table = make_table(
        f"Rebalances in each {window}",
        ("From", *named),
        rows,
        numeric=range(1, len(named) + 1),
    )
    chart = draw_bars(words, named, series.start_ms, series.window_ms, show_short)
    return Section("rebalances", "Rebalances over time", intro, [chart, table])


def show_convergence(convergence: Convergence) -> Section:
    """Convergence times: their distribution, and percentiles over time."""
    intro = (
        "From the first new group epoch until every member present was stable at the target "
        "assignment."
    )
    content: list[str] = []
    if any(convergence.counts):
        content = [*_show_distribution(convergence), *_show_times(convergence)]
    notes = []
    if convergence.never:
        notes.append(
            f"{show_count(convergence.never)} never converged: the group became empty first, or "
            "the log ends before."
        )
    if convergence.untimed:
        notes.append(
            f"{show_count(convergence.untimed)} rebalances of classic groups are not in these "
            "figures: no record tells when they began."
        )
    if notes:
        content.append(element("p", escape(" ".join(notes)), class_="quiet"))
    return Section("convergence", "Time to converge", intro, content or [_NOTHING])


def _show_distribution(convergence: Convergence) -> list[str]:
    marked = {
        _PERCENTILES.get(name, name): value for name, value in convergence.percentiles_ms.items()
    }
    shown = ", ".join(f"{name} {show_duration(value)}" for name, value in marked.items())
    words = ChartText(
        "convergence-chart",
        "How long rebalances took",
        f"{show_count(sum(convergence.counts))} rebalances that converged: {shown}.",
        "rebalances",
    )
    rows = [
        (show_duration(low), show_duration(high), count)
        for (low, high), count in zip(
            pairwise(convergence.edges_ms), convergence.counts, strict=True
        )
    ]
    return [
        draw_histogram(words, convergence.edges_ms, convergence.counts, marked),
        make_table("Rebalances by convergence time", ("From", "To", "Count"), rows, numeric=(2,)),
    ]


def _show_times(convergence: Convergence) -> list[str]:
    window = show_duration(convergence.window_ms)
    words = ChartText(
        "convergence-times-chart",
        "Time to converge over time",
        f"The median and the 99th percentile of rebalances that began in each {window}.",
        f"time to converge by start in {window}, logarithmic",
    )
    lines = {"median": convergence.p50_ms, "99th percentile": convergence.p99_ms}
    rows = [
        (
            show_time(convergence.start_ms + i * convergence.window_ms),
            show_duration(p50),
            show_duration(p99),
        )
        for i, (p50, p99) in enumerate(zip(convergence.p50_ms, convergence.p99_ms, strict=True))
        if p50 is not None
    ]
    return [
        element("h3", "Over time"),
        draw_lines(
            words,
            lines,
            convergence.start_ms,
            convergence.window_ms,
            show_duration,
            make_duration_axis(
                [ms for series in lines.values() for ms in series if ms is not None]
            ),
        ),
        make_table(f"Time to converge in each {window}", ("From", *lines), rows, numeric=(1, 2)),
    ]


def show_busiest(ranking: Ranking, convergence: Convergence, anchors: Mapping[str, str]) -> Section:
    """The groups that rebalance most often."""
    intro = "The groups with the most rebalances, and what is unusual about them."
    content = _show_ranking(
        "Groups that rebalanced most often",
        ranking,
        convergence,
        anchors,
        f"{show_count(ranking.other_groups)} other groups",
        show_count(ranking.other_rebalances),
    )
    return Section("busiest", "Worst groups: most often", intro, content)


def show_slowest(ranking: Ranking, convergence: Convergence, anchors: Mapping[str, str]) -> Section:
    """The groups with the longest total convergence time."""
    intro = "The groups with the longest total time to converge, over all rebalances."
    content = _show_ranking(
        "Groups that took longest to converge",
        ranking,
        convergence,
        anchors,
        f"{show_count(ranking.other_groups)} other groups that converged",
        show_count(ranking.other_rebalances),
    )
    return Section("slowest", "Worst groups: longest", intro, content)


_COLUMNS = (
    "Group",
    "Rebalances",
    "Over time",
    "Median",
    "Longest",
    "In all",
    "Partitions moved",
    "Why",
)


def _show_ranking(
    caption: str,
    ranking: Ranking,
    convergence: Convergence,
    anchors: Mapping[str, str],
    others: str,
    rebalances: str,
) -> Sequence[str]:
    if not ranking.groups:
        return [_NOTHING]
    usual_ms = convergence.percentiles_ms.get("p50")
    rows = [_show_group(group, usual_ms, anchors.get(group.group_id)) for group in ranking.groups]
    if ranking.other_groups:
        cells = [
            element("th", escape(others), scope="row"),
            element("td", rebalances, class_="n"),
            element("td", colspan=len(_COLUMNS) - 2),
        ]
        rows.append(element("tr", *cells, class_="rest"))
    return [wrap_table(caption, _COLUMNS, rows, numeric=(1, 3, 4, 5, 6))]


def _show_group(group: BusyGroup, usual_ms: int | None, anchor: str | None) -> str:
    total = show_duration(group.total_ms) if group.longest_ms is not None else "–"
    return element(
        "tr",
        make_head_cell(
            group.group_id, element("div", group.protocol, class_="quiet"), anchor=anchor
        ),
        make_cell(group.rebalances, is_number=True),
        element(
            "td",
            draw_spark(
                group.per_window,
                f"{group.rebalances} rebalances, at most {max(group.per_window, default=0)} in "
                "one window",
            ),
        ),
        make_cell(show_duration(group.p50_ms), is_number=True),
        make_cell(show_duration(group.longest_ms), is_number=True),
        make_cell(total, is_number=True),
        make_cell(group.partitions_moved, is_number=True),
        element("td", escape(explain_busy(group, usual_ms)), class_="why"),
    )
