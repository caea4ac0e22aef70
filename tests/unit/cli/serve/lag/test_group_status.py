"""The status of partitions and groups by the rules of Burrow, a row for each."""

from __future__ import annotations

import pytest

from cli.serve.lag.commit_windows import CommitWindow
from cli.serve.lag.group_status import (
    WINDOW,
    Commit,
    Rule,
    Status,
    compute_group_status,
    find_rule,
    status_of,
)

LEAST_SPAN_MS = 1_000
END_MS = 10_000
"""When the last commit of most rows was made."""


def commits(*offsets_and_lags: tuple[int, int], step_ms: int = 500) -> list[Commit]:
    first_ms = END_MS - step_ms * (len(offsets_and_lags) - 1)
    return [
        Commit(first_ms + number * step_ms, offset, lag)
        for number, (offset, lag) in enumerate(offsets_and_lags)
    ]


ADVANCING = commits((10, 5), (20, 5), (30, 6))
CATCHING_UP = commits((10, 50), (20, 60), (30, 40))
STALLED = commits((10, 5), (10, 6), (10, 9))
SPAN_MS = 1_000
"""Of three commits."""

ROWS = [
    ("no lag now, whatever was", ADVANCING, 0, END_MS, Rule.NO_LAG, Status.OK),
    ("no lag, and long ago", ADVANCING, 0, END_MS * 9, Rule.NO_LAG, Status.OK),
    ("it was 0 once", commits((1, 5), (2, 0), (2, 9)), 9, END_MS, Rule.LAG_WAS_ZERO, Status.OK),
    ("0 once, and long ago", commits((1, 0),), 9, END_MS * 9, Rule.LAG_WAS_ZERO, Status.OK),
    ("back by one", commits((5, 5), (4, 6), (9, 1)), 1, END_MS, Rule.REWOUND, Status.REWIND),
    ("back, and two commits", commits((5, 5), (4, 6)), 6, END_MS, Rule.REWOUND, Status.REWIND),
    ("back, then silent", commits((5, 5), (4, 6)), 6, END_MS * 9, Rule.REWOUND, Status.REWIND),
    ("silent for longer", ADVANCING, 9, END_MS + SPAN_MS + 1, Rule.STOPPED, Status.STOP),
    ("silent for as long", ADVANCING, 9, END_MS + SPAN_MS, Rule.LAG_GROWS, Status.WARN),
    ("stalled, then silent", STALLED, 9, END_MS + SPAN_MS + 1, Rule.STOPPED, Status.STOP),
    ("one commit", commits((1, 5)), 5, END_MS + LEAST_SPAN_MS, Rule.TOO_SHORT, Status.OK),
    ("one, long ago", commits((1, 5)), 5, END_MS + LEAST_SPAN_MS + 1, Rule.STOPPED, Status.STOP),
    ("two close ones", commits((1, 5), (2, 6), step_ms=9), 6, END_MS, Rule.TOO_SHORT, Status.OK),
    ("a slow topic", commits((1, 5), (2, 6), (3, 7), step_ms=4_000), 7, END_MS + 7_999,
     Rule.LAG_GROWS, Status.WARN),
    ("the offset stays", STALLED, 9, END_MS, Rule.STALLED, Status.STALL),
    ("the lag grows", ADVANCING, 6, END_MS, Rule.LAG_GROWS, Status.WARN),
    ("the lag stays", commits((1, 5), (2, 5), (3, 5)), 5, END_MS, Rule.LAG_GROWS, Status.WARN),
    ("it falls at one of them", CATCHING_UP, 40, END_MS, Rule.LAG_FALLS, Status.OK),
]  # fmt: skip


@pytest.mark.parametrize(
    ("seen", "lag", "now_ms", "rule", "status"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_a_partition(seen: list[Commit], lag: int, now_ms: int, rule: Rule, status: Status) -> None:
    found = find_rule(seen, lag, now_ms, LEAST_SPAN_MS)
    assert found is rule
    assert status_of(found) is status


def test_every_rule_has_a_row_and_a_status() -> None:
    assert {row[4] for row in ROWS} == set(Rule)
    assert {status_of(rule) for rule in Rule} == set(Status) - {Status.NOTFOUND, Status.ERR}


@pytest.mark.parametrize(
    ("worst", "status"),
    [
        (Status.NOTFOUND, Status.NOTFOUND),
        (Status.OK, Status.OK),
        (Status.WARN, Status.WARN),
        (Status.STOP, Status.ERR),
        (Status.STALL, Status.ERR),
        (Status.REWIND, Status.ERR),
    ],
)
def test_a_group_is_as_its_worst_partition(worst: Status, status: Status) -> None:
    assert compute_group_status(worst) is status


def test_a_window_has_the_last_commits() -> None:
    window = CommitWindow()
    for number in range(WINDOW + 3):
        window.see(number, 1_000 + number, 7, now_ms=0)
    seen = window.commits()
    assert [commit.offset for commit in seen] == list(range(3, WINDOW + 3))
    assert seen[-1] == Commit(1_000 + WINDOW + 2, WINDOW + 2, 7)


def test_a_commit_of_the_same_offset_is_one_more_if_its_time_is_known() -> None:
    window = CommitWindow()
    window.see(5, 1_000, 1, now_ms=0)
    window.see(5, 1_000, 9, now_ms=0)
    assert window.commits() == [Commit(1_000, 5, 1)]
    window.see(5, 2_000, 9, now_ms=0)
    assert window.commits() == [Commit(1_000, 5, 1), Commit(2_000, 5, 9)]


def test_without_a_time_only_another_offset_is_a_commit_of_now() -> None:
    window = CommitWindow()
    for now_ms, offset in ((10, 5), (20, 5), (30, 6)):
        window.see(offset, None, 1, now_ms)
    assert window.commits() == [Commit(10, 5, 1), Commit(30, 6, 1)]
