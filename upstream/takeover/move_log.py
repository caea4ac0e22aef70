"""Log lines and counts of the moves of groups."""

from __future__ import annotations

from typing import Final

from model.errors import ErrorCode
from model.ids import GroupId
from upstream.place_log import (
    log_place_changed,
    log_sentinel_joined,
    log_sentinel_lost,
    log_takeover_put_off,
)
from upstream.sentinel.sentinel_seat import Seat
from upstream.statistics import UpstreamStatistics
from upstream.takeover.machine.move import Move
from upstream.takeover.machine.takeover_steps import Step

_CAUSES: Final = {
    ErrorCode.UNKNOWN_MEMBER_ID: "evicted",
    ErrorCode.FENCED_INSTANCE_ID: "fenced",
    ErrorCode.ILLEGAL_GENERATION: "generation",
}
_REFUSING: Final = (Step.LOOKING, Step.NOTING, Step.UNNOTING)


class MoveLog:
    """Says each change of place in a line, and counts how moves end."""

    def __init__(self, statistics: UpstreamStatistics) -> None:
        self._statistics = statistics

    def note_step(self, before: Move, after: Move) -> None:
        """A group has come to another step."""
        group_id = GroupId(after.group_id)
        if after.place is not before.place:
            cause = after.error if after.step is Step.UPSTREAM and after.error else after.cause
            log_place_changed(group_id, before.place, after.place, cause)
        if after.step is Step.HERE and before.step is Step.ADOPTING:
            self._statistics.takeovers["taken"] += 1
        if after.step is Step.ALONE and before.step is Step.RETURNING:
            self._statistics.releases["refused"] += 1
        if after.step is Step.UPSTREAM:
            self._note_end(before, after)

    def _note_end(self, before: Move, after: Move) -> None:
        if before.step in _REFUSING:
            strangers = [f"{each.client_id} {each.host}" for each in after.strangers]
            log_takeover_put_off(GroupId(after.group_id), after.error, strangers)
            self._statistics.takeovers["put_off" if strangers else "failed"] += 1
        elif before.step is Step.GIVING_UP:
            self._statistics.releases["failed" if after.error else "released"] += 1

    def note_seat(self, group_id: str, seat: Seat) -> None:
        """The sentinel is in."""
        log_sentinel_joined(GroupId(group_id), seat.member_id, seat.generation)

    def note_loss(self, group_id: str, code: ErrorCode) -> None:
        """The sentinel is out, or as good as out."""
        cause = _CAUSES.get(code)
        if cause is not None:
            self._statistics.sentinels_lost[cause] += 1
        log_sentinel_lost(GroupId(group_id), cause or code.name)
