"""Fencing tokens: numbers that tell the member that owns a partition from all that owned it before.

A log partition gives tokens in ascending order, to whichever group and partition. The first after a
load is ``compute_first_token``; every command that passes partitions to a member takes the next.
Such a command writes at least one record, so the log end grows at least as fast as the tokens, and
the first token after the next load is above all that were given before it.
"""

from __future__ import annotations

from typing import Final

from model.ids import LogOffset
from model.log.side_records import OFFSETS_OF_A_MS

NO_TOKEN: Final = 0
"""What a partition has that was never passed to a member since the load."""


def compute_first_token(wall_ms: int, log_end: LogOffset) -> int:
    """The first token of a log partition that is loaded now.

    ``wall_ms`` is never below that of an earlier load, so the log end alone would do for a restart.
    The time is for a log that was restored: it may end lower than the log in which the last tokens
    were given, but by less than ``OFFSETS_OF_A_MS`` records for each millisecond since the start
    that gave them. An import with side records needs no time (``move_side``).
    """
    return wall_ms * OFFSETS_OF_A_MS + log_end


class Tokens:
    """The tokens of one log partition. Only ``coordinator.core.replay`` modifies it.

    ``next`` is the token of the next command that passes partitions to a member. ``of_load`` is
    that of all partitions that had an owner when the log partition was loaded.
    """

    __slots__ = ("is_taken", "next", "of_load")

    def __init__(self) -> None:
        self.next = self.of_load = NO_TOKEN
        self.is_taken = False
