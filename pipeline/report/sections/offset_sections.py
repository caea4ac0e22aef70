"""The sections about offsets: lag and expiry."""

from __future__ import annotations

from pipeline.report.charts import ChartText, draw_bars, draw_lines, draw_spark
from pipeline.report.elements import (
    Section,
    make_cell,
    make_head_cell,
    make_table,
    name_group,
    wrap_table,
)
from pipeline.report.figures import (
    ExpiringGroup,
    ExpiryFigures,
    LagFigures,
    LaggingGroup,
)
from pipeline.report.scales import show_count, show_duration, show_short, show_time
from pipeline.report.svg import element, escape

_DRAWN_GROUPS = 5
_STATUS_WORDS = {
    "OK": "keeping up",
    "FALLING_BEHIND": "falling behind",
    "STALLED": "committing the same offset",
    "STOPPED": "committing nothing",
    "REWOUND": "rewound",
    "UNKNOWN": "unknown",
}


def show_lag(lag: LagFigures | None) -> Section:
    """The lag of groups; if no end offsets are known, how to supply them."""
    title = "Lag"
    if lag is None:
        intro = (
            "Lag is the distance from a committed offset to the end of its partition, which the "
            "log of groups does not contain. Give the end offsets with --end-offsets FILE."
        )
        return Section("lag", title, intro, [])
    intro = "Messages from the committed offset to the end of the partition, where that is known."
    drawn = {name_group(group.group_id): group.per_window for group in lag.groups[:_DRAWN_GROUPS]}
    window = show_duration(lag.window_ms)
    words = ChartText(
        "lag-chart",
        "Lag over time",
        f"Lag in messages at the end of each {window}, of the {len(drawn)} groups with most lag.",
        "messages behind",
    )
    rows = [
        (show_time(lag.start_ms + i * lag.window_ms), *values)
        for i, values in enumerate(zip(*drawn.values(), strict=True), 1)
        if any(value is not None for value in values)
    ]
    columns = ("At", *drawn)
    content = [
        draw_lines(words, drawn, lag.start_ms, lag.window_ms, show_short, is_at_end=True),
        make_table(
            f"Lag at the end of each {window}", columns, rows, numeric=range(1, len(columns))
        ),
        _show_statuses(lag),
        _show_lagging(lag),
    ]
    return Section("lag", title, intro, content)


def _show_statuses(lag: LagFigures) -> str:
    parts = [
        f"{show_count(count)} {_STATUS_WORDS.get(name, name)}"
        for name, count in sorted(lag.statuses.items(), key=lambda item: -item[1])
    ]
    text = f"Partitions at the end: {', '.join(parts)}."
    if lag.unknown_partitions:
        text += f" The end offset of {show_count(lag.unknown_partitions)} is unknown."
    return element("p", escape(text))


def _show_lagging(lag: LagFigures) -> str:
    rows = [_show_lagging_group(group) for group in lag.groups]
    if lag.other_groups:
        cells = [
            element("th", escape(f"{show_count(lag.other_groups)} other groups"), scope="row"),
            element("td", show_count(lag.other_lag), class_="n"),
            element("td", colspan=5),
        ]
        rows.append(element("tr", *cells, class_="rest"))
    columns = (
        "Group",
        "Behind, messages",
        "Behind, time",
        "Most",
        "Over time",
        "Partitions",
        "Of these",
    )
    return wrap_table("Groups furthest behind at the end", columns, rows, numeric=(1, 2, 3, 5))


def _show_lagging_group(group: LaggingGroup) -> str:
    statuses = ", ".join(
        f"{show_count(count)} {_STATUS_WORDS.get(name, name)}"
        for name, count in sorted(group.statuses.items(), key=lambda item: -item[1])
    )
    known = [value for value in group.per_window if value is not None]
    words = (
        f"lag from {show_count(known[0])} to {show_count(known[-1])}" if known else "no lag known"
    )
    return element(
        "tr",
        make_head_cell(group.group_id),
        make_cell(group.lag, is_number=True),
        make_cell(
            show_duration(None if group.lag_s is None else group.lag_s * 1000), is_number=True
        ),
        make_cell(group.most_lag, is_number=True),
        element("td", draw_spark(group.per_window, words)),
        make_cell(group.partitions, is_number=True),
        element("td", escape(statuses)),
    )


def show_expiry(expiry: ExpiryFigures | None) -> Section:
    """Which offsets expire, when, and of which groups."""
    title = "Offsets about to expire"
    if expiry is None:
        return Section("expiry", title, "The log has no offsets.", [])
    retention = show_duration(expiry.retention_ms)
    intro = (
        f"Offsets of groups without members, or of topics without a subscriber, expire "
        f"{retention} after the group became empty or the offset was committed. Counted from the "
        f"end of the log, {show_time(expiry.end_ms)}."
    )
    if not expiry.groups:
        nothing = f"None of {show_count(expiry.offsets)} offsets is about to expire."
        return Section("expiry", title, intro, [element("p", nothing)])
    window = show_duration(expiry.window_ms)
    soon = f"{show_count(expiry.within_day)} expire within a day"
    words = ChartText(
        "expiry-chart",
        "Offsets by expiry time",
        f"{show_count(sum(expiry.counts))} offsets that expire in the {retention} after the end of "
        f"the log; {soon}.",
        f"offsets in {window}",
    )
    rows = [
        (show_time(expiry.end_ms + i * expiry.window_ms), count)
        for i, count in enumerate(expiry.counts)
    ]
    counts = {"offsets": expiry.counts}
    content = [
        draw_bars(words, counts, expiry.end_ms, expiry.window_ms, show_short),
        make_table(
            f"Offsets that expire in each {window}", ("From", "Offsets"), rows, numeric=(1,)
        ),
    ]
    if expiry.overdue:
        content.append(
            element(
                "p",
                f"{show_count(expiry.overdue)} are overdue: with a retention of {retention} they "
                "should be gone, so the log ends before the next expiry check, or the retention "
                "was different.",
                class_="warn",
            )
        )
    return Section("expiry", title, intro, [*content, _show_expiring(expiry)])


def _show_expiring(expiry: ExpiryFigures) -> str:
    rows = [_show_expiring_group(group, expiry.end_ms) for group in expiry.groups]
    if expiry.other_groups:
        cells = [
            element("th", escape(f"{show_count(expiry.other_groups)} other groups"), scope="row"),
            element("td", show_count(expiry.other_offsets), class_="n"),
            element("td", colspan=4),
        ]
        rows.append(element("tr", *cells, class_="rest"))
    columns = ("Group", "Offsets", "Topics", "First expires in", "Last at", "Why")
    return wrap_table("Groups whose offsets expire first", columns, rows, numeric=(1, 2, 3))


def _show_expiring_group(group: ExpiringGroup, end_ms: int) -> str:
    left_ms = group.first_ms - end_ms
    return element(
        "tr",
        make_head_cell(group.group_id),
        make_cell(group.offsets, is_number=True),
        make_cell(group.topics, is_number=True),
        make_cell(show_duration(left_ms) if left_ms > 0 else "overdue", is_number=True),
        make_cell(show_time(group.last_ms)),
        make_cell(group.reason),
    )
