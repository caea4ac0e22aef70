"""Classic-group requests that wait for other members.

A JoinGroup waits until all members have joined, a SyncGroup until the leader has sent the
assignment. This module keeps their replies by group and member; the core decides when to answer.

The end of a phase answers every waiting request. All responses are decided at that moment, whatever
happens later, but each must be encoded; very many are sent in slices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from coordinator.core.state.classic.classic_group import Phase
from coordinator.core.state.outcome import Outcome, Release, Wait
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.loop.slices import Slices, Steps
from model.errors import GroupError, NotCoordinator, RebalanceInProgress
from model.ids import GroupId, MemberId
from model.responses.response import Done

SLICE: Final = 100
"""Responses sent per iteration, each encoded in some 50 µs."""

_Given: TypeAlias = deque[tuple[Reply, Answer]]


class WaitingMembers:
    """Members of classic groups that wait for a response.

    ``answer`` sends a response when the state of these groups is durable.
    """

    def __init__(
        self, slices: Slices, answer: Callable[[tuple[GroupId, ...], Reply, Answer], None]
    ) -> None:
        # Reads must not wait for a rebalance.
        self._slices = slices.beside()
        self._answer = answer
        self._waiting: dict[tuple[GroupId, MemberId, Phase], Reply] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_busy(self) -> bool:
        """Whether decided responses are still to be sent."""
        return self._slices.is_busy

    def apply(self, group_id: GroupId, outcome: Outcome, reply: Reply) -> None:
        """Keep the request waiting if the outcome says so, then answer the released ones.

        A released request may date from before the group's conversion from the classic protocol.
        """
        if outcome.wait is not None:
            self._wait(group_id, outcome.wait, reply)
        if outcome.releases:
            self._release(group_id, outcome.releases)

    def _wait(self, group_id: GroupId, wait: Wait, reply: Reply) -> None:
        """Keep a member's reply. A member waits for one response; an older request is refused."""
        key = (group_id, wait.member_id, wait.phase)
        older = self._waiting.get(key)
        self._waiting[key] = reply
        if older is not None:
            error = RebalanceInProgress("A newer request of the member replaced this one.")
            self._answer((group_id,), older, error)

    def _release(self, group_id: GroupId, releases: tuple[Release, ...]) -> None:
        pop = self._waiting.pop
        given: _Given = deque()
        for each in releases:
            reply = pop((group_id, each.member_id, each.phase), None)
            if reply is not None:
                given.append((reply, each.answer))
        if len(given) > SLICE:
            self._answer((group_id,), partial(self._give_out, given), Done())
            return
        for reply, answer in given:
            self._answer((group_id,), reply, answer)

    def _give_out(self, given: _Given, durable: Answer) -> None:
        """Send the responses, now that what they show is durable, in later iterations.

        This iteration may be the one that ended the phase.
        """
        # If one fails, the rest are still sent.
        self._slices.go_on(self._give(given), lambda _: self._give_out(given, durable))

    def _give(self, given: _Given) -> Steps[None]:
        while given:
            for _ in range(min(SLICE, len(given))):
                reply, answer = given.popleft()
                self._answer((), reply, answer)
            if given:
                yield

    def refuse(self, is_refused: Callable[[GroupId], bool], error: GroupError) -> None:
        """Refuse the waiting requests of some groups."""
        for key in [key for key in self._waiting if is_refused(key[0])]:
            self._answer((key[0],), self._waiting.pop(key), error)

    def stop(self) -> None:
        """Refuse every waiting request."""
        waiting, self._waiting = self._waiting, {}
        for (group_id, _, _), reply in waiting.items():
            self._answer((group_id,), reply, NotCoordinator("The coordinator is stopping."))
