"""Answers of classic groups that wait for other members.

A join waits until all have joined, a sync until the leader has assigned. Who waits is kept here, by
group and member; that and when they are answered is the core's to say.

The end of a phase answers all who wait in it. Nobody waits for it any more from that moment on, and
what each is told is decided, whatever comes then; but each answer has to be encoded. Of very many
they are given out in slices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from coordinator.core.state.classic_group import Phase
from coordinator.core.state.outcome import Outcome, Release, Wait
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.loop.slices import Slices, Steps
from model.errors import NotCoordinator, RebalanceInProgress
from model.ids import GroupId, MemberId
from model.responses import Done

SLICE: Final = 100
"""Answers that are given in one turn, each encoded in some 50 µs."""

_Given: TypeAlias = deque[tuple[Reply, Answer]]


class WaitingMembers:
    """Members of classic groups that wait for an answer.

    ``answer`` gives an answer when all that it shows of these groups is durable.
    """

    def __init__(
        self, slices: Slices, answer: Callable[[tuple[GroupId, ...], Reply, Answer], None]
    ) -> None:
        # No read waits for a rebalance.
        self._slices = slices.beside()
        self._answer = answer
        self._waiting: dict[tuple[GroupId, MemberId, Phase], Reply] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_busy(self) -> bool:
        """Whether answers that are decided are still to be given."""
        return self._slices.is_busy

    def apply(self, group_id: GroupId, outcome: Outcome, reply: Reply) -> None:
        """Who asks waits, where the outcome says so; then those who are to be answered are.

        Also of those who waited while what is now another group was a classic one.
        """
        if outcome.wait is not None:
            self._wait(group_id, outcome.wait, reply)
        if outcome.releases:
            self._release(group_id, outcome.releases)

    def _wait(self, group_id: GroupId, wait: Wait, reply: Reply) -> None:
        """A member waits for one answer at a time: who asked before it is told to ask again."""
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
        """All that these answers show is durable. This turn may be the one that ended the phase."""
        # Should one fail, those behind it get theirs.
        self._slices.go_on(self._give(given), lambda _: self._give_out(given, durable))

    def _give(self, given: _Given) -> Steps[None]:
        while given:
            for _ in range(min(SLICE, len(given))):
                reply, answer = given.popleft()
                self._answer((), reply, answer)
            if given:
                yield

    def stop(self) -> None:
        """Nobody waits any longer (row J10)."""
        waiting, self._waiting = self._waiting, {}
        for (group_id, _, _), reply in waiting.items():
            self._answer((group_id,), reply, NotCoordinator("The coordinator is stopping."))
