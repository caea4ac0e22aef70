"""When a take that failed may be tried again by itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from upstream.takeover.machine.move import Move
from upstream.takeover.machine.takeover_steps import Step

FIRST_MS: Final = 30_000
LONGEST_MS: Final = 600_000
GROUPS_MAX: Final = 10_000


@dataclass(slots=True)
class _Failure:
    move: Move
    pause_ms: int
    until_ms: int


class Retries:
    """The last failure of each group; each one in a row doubles the pause. Bounded."""

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._failures: OrderedDict[str, _Failure] = OrderedDict()

    def may_try(self, group_id: str) -> bool:
        """Whether no pause is in force."""
        failure = self._failures.get(group_id)
        return failure is None or self._clock_ms() >= failure.until_ms

    def failures(self) -> Iterator[Move]:
        """The moves as they ended."""
        return (failure.move for failure in self._failures.values())

    def note(self, move: Move) -> None:
        """A move has ended, well or not."""
        before = self._failures.pop(move.group_id, None)
        if move.step is not Step.UPSTREAM or not move.error:
            return
        pause_ms = FIRST_MS if before is None else min(2 * before.pause_ms, LONGEST_MS)
        self._failures[move.group_id] = _Failure(move, pause_ms, self._clock_ms() + pause_ms)
        if len(self._failures) > GROUPS_MAX:
            self._failures.popitem(last=False)
