"""Says why groups get new epochs: a line of the server's log for each group, and counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from coordinator.core.state.outcome import NoteEpochCauses
from model.ids import GroupId
from model.past.causes import Cause

log = structlog.get_logger()

LINES_PER_SECOND_MAX: Final = 50
"""So many groups are told of in a second: writing more would cost the groups more than they do."""


@dataclass(slots=True)
class _Noted:
    first: Cause
    count: int


class RebalanceCauses:
    """Gathers the causes of the epochs of one iteration, and tells of each group once.

    Members that start together join in one iteration, and are one rebalance. Above
    ``LINES_PER_SECOND_MAX`` groups are only counted.
    """

    def __init__(
        self,
        counts: Counter[str],
        call_soon: Callable[[Callable[[], None]], object],
        now_ms: Callable[[], int],
    ) -> None:
        self._counts = counts
        self._call_soon = call_soon
        self._now_ms = now_ms
        self._noted: dict[GroupId, _Noted] = {}
        self._second = 0
        self._lines_left = LINES_PER_SECOND_MAX
        self._untold = 0

    def note(self, effect: NoteEpochCauses) -> None:
        """A group gets a new epoch."""
        if not effect.causes:
            return
        first = effect.causes[0]
        self._counts[first.kind.value] += 1
        noted = self._noted.get(effect.group_id)
        if noted is not None:
            noted.count += effect.count
            return
        if not self._noted:
            self._call_soon(self._tell)
        self._noted[effect.group_id] = _Noted(first, effect.count)

    def _tell(self) -> None:
        noted, self._noted = self._noted, {}
        second = self._now_ms() // 1_000
        if second != self._second:
            if self._untold:
                log.info("rebalances_not_logged", groups=self._untold)
            self._second, self._lines_left, self._untold = second, LINES_PER_SECOND_MAX, 0
        for group_id, one in noted.items():
            if not self._lines_left:
                self._untold += 1
                continue
            self._lines_left -= 1
            log.info("rebalance", group_id=group_id, **_describe(one.first, one.count))


def _describe(cause: Cause, count: int) -> dict[str, object]:
    """What the line says; ``causes`` if there are more than the one that it names."""
    said: dict[str, object] = {
        "cause": cause.kind.value,
        "member_id": cause.member_id,
        "client_id": cause.client_id,
        "client_host": cause.client_host,
        "instance_id": cause.instance_id,
        "reason": cause.reason,
        "topic": cause.topic_name,
        "causes": count if count > 1 else None,
    }
    return {name: each for name, each in said.items() if each}
