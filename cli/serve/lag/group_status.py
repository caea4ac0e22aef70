"""The status of a group by its commits, by the rules of Burrow: nobody has to set a threshold.

A partition is judged by its last commits, as ``Commit`` has them, and by its lag now. The first
rule that applies decides. Two things differ from Burrow, which calls slow consumers stopped: a
window that is too short to tell is not judged, and the lag of now is against the end of now.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntEnum
from itertools import pairwise
from typing import Final, NamedTuple


class Status(IntEnum):
    """Of partitions and groups, with Burrow's numbers; ``ERR`` is of groups alone."""

    NOTFOUND = 0
    OK = 1
    WARN = 2
    ERR = 3
    STOP = 4
    STALL = 5
    REWIND = 6


class Rule(Enum):
    """Why a partition has its status."""

    NO_LAG = "there is no lag now"
    LAG_WAS_ZERO = "the lag was 0 at one of the commits"
    TOO_SHORT = "there are too few commits to tell"
    REWOUND = "a commit is below the one before it"
    STOPPED = "the last commit is older than all commits of the window span"
    STALLED = "commits go on, and their offset does not"
    LAG_GROWS = "the offsets advance, and the lag decreases at no commit"
    LAG_FALLS = "the lag decreased at a commit"


_STATUS_OF: Final = {
    Rule.NO_LAG: Status.OK,
    Rule.LAG_WAS_ZERO: Status.OK,
    Rule.TOO_SHORT: Status.OK,
    Rule.REWOUND: Status.REWIND,
    Rule.STOPPED: Status.STOP,
    Rule.STALLED: Status.STALL,
    Rule.LAG_GROWS: Status.WARN,
    Rule.LAG_FALLS: Status.OK,
}

WINDOW: Final = 10
"""The commits of a partition that are judged, as in Burrow."""
COMMITS_MIN: Final = 3
"""Fewer tell nothing of a trend."""


class Commit(NamedTuple):
    """A commit as it was seen: when it was made (wall ms), its offset, and the lag then."""

    at_ms: int
    offset: int
    lag: int


def find_rule(commits: Sequence[Commit], lag: int, now_ms: int, least_span_ms: int) -> Rule:
    """The rule that decides on a partition.

    ``commits`` are in the order in which they were made, at least one. A consumer has stopped if
    its last commit is older than the span of the window, and than ``least_span_ms``.
    """
    if lag <= 0:
        return Rule.NO_LAG
    if any(commit.lag == 0 for commit in commits):
        return Rule.LAG_WAS_ZERO
    if any(later.offset < earlier.offset for earlier, later in pairwise(commits)):
        return Rule.REWOUND
    span_ms = max(commits[-1].at_ms - commits[0].at_ms, least_span_ms)
    if now_ms - commits[-1].at_ms > span_ms:
        return Rule.STOPPED
    if len(commits) < COMMITS_MIN:
        return Rule.TOO_SHORT
    if commits[0].offset == commits[-1].offset:
        return Rule.STALLED
    if all(later.lag >= earlier.lag for earlier, later in pairwise(commits)):
        return Rule.LAG_GROWS
    return Rule.LAG_FALLS


def status_of(rule: Rule) -> Status:
    """The status that a rule gives to a partition."""
    return _STATUS_OF[rule]


def compute_group_status(worst: Status) -> Status:
    """The status of a group by that of its worst partition.

    ``ERR`` if that has stopped, stalled or been rewound.
    """
    return min(worst, Status.ERR)
