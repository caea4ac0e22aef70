"""Figures of lag for tests of what is shown of them."""

from __future__ import annotations

from cli.serve.lag.commit_windows import CommitWindow
from cli.serve.lag.group_status import Rule
from cli.serve.lag.lag_figures import (
    Ends,
    GroupLag,
    LagFigures,
    PartitionLag,
    Place,
    Summing,
    compute_lag,
)
from model.ids import TopicName

LATE_MS = 2_500
COMMITTED_MS = 1_700_000_000_000


def make_row(topic: str, partition: int, committed: int, ends: Ends, rule: Rule) -> PartitionLag:
    """A partition; what lags is late by ``LATE_MS``."""
    lag, ahead = compute_lag(committed, ends)
    window = CommitWindow()
    window.see(committed, COMMITTED_MS, lag or 0, 0)
    lag_ms = None if lag is None else LATE_MS if lag else 0
    return PartitionLag(
        TopicName(topic),
        partition,
        committed,
        COMMITTED_MS,
        ends.end,
        lag,
        ahead,
        lag_ms,
        None if lag is None else rule,
        window,
    )


def make_group(*rows: PartitionLag) -> GroupLag:
    """The group of these partitions."""
    of_group = Summing()
    of_topics: dict[TopicName, Summing] = {}
    for row in rows:
        of_group.add(row)
        of_topics.setdefault(row.topic, Summing()).add(row)
    topics = {topic: summing.compute_sums() for topic, summing in of_topics.items()}
    return GroupLag(rows, of_group.compute_sums(), topics, of_group.compute_status())


def make_lag() -> LagFigures:
    """Group `billing` lags by 20 and 7 and is ahead by 2; nothing is known of group `dark`."""
    ends: dict[Place, Ends] = {
        (TopicName("orders"), 0): Ends(0, 30),
        (TopicName("orders"), 1): Ends(0, 10),
        (TopicName("payments"), 3): Ends(4, 9),
        (TopicName("far"), 0): Ends(None, None),
    }
    rows = [
        make_row("orders", 0, 10, Ends(0, 30), Rule.LAG_GROWS),
        make_row("orders", 1, 12, Ends(0, 10), Rule.NO_LAG),
        make_row("payments", 3, 2, Ends(4, 9), Rule.STOPPED),
    ]
    dark = make_row("far", 0, 8, Ends(None, None), Rule.NO_LAG)
    groups = {"billing": make_group(*rows), "dark": make_group(dark)}
    return LagFigures(groups, ends, 100.0, 101.5, 3, 4)
