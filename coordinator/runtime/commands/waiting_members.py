"""Answers of classic groups that wait for other members.

A join waits until all have joined, a sync until the leader has assigned. Who waits is kept here, by
group and member; that and when they are answered is the core's to say.
"""

from __future__ import annotations

from collections.abc import Callable

from coordinator.core.state.classic_group import Phase
from coordinator.core.state.outcome import Outcome, Release, Wait
from coordinator.runtime.api import Answer, Reply
from model.errors import NotCoordinator, RebalanceInProgress
from model.ids import GroupId, MemberId


class WaitingMembers:
    """Members of classic groups that wait for an answer.

    ``answer`` gives an answer when all that it shows of its group is durable.
    """

    def __init__(self, answer: Callable[[tuple[GroupId, ...], Reply, Answer], None]) -> None:
        self._answer = answer
        self._waiting: dict[tuple[GroupId, MemberId, Phase], Reply] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def apply(self, group_id: GroupId, outcome: Outcome, reply: Reply) -> None:
        """Who asks waits, where the outcome says so; then those who are to be answered are.

        Also of those who waited while what is now another group was a classic one.
        """
        if outcome.wait is not None:
            self._wait(group_id, outcome.wait, reply)
        for release in outcome.releases:
            self._release(group_id, release)

    def _wait(self, group_id: GroupId, wait: Wait, reply: Reply) -> None:
        """A member waits for one answer at a time: who asked before it is told to ask again."""
        key = (group_id, wait.member_id, wait.phase)
        older = self._waiting.get(key)
        self._waiting[key] = reply
        if older is not None:
            error = RebalanceInProgress("The member has asked again since.")
            self._answer((group_id,), older, error)

    def _release(self, group_id: GroupId, release: Release) -> None:
        reply = self._waiting.pop((group_id, release.member_id, release.phase), None)
        if reply is not None:
            self._answer((group_id,), reply, release.answer)

    def stop(self) -> None:
        """Nobody waits any longer (row J10)."""
        waiting, self._waiting = self._waiting, {}
        for (group_id, _, _), reply in waiting.items():
            self._answer((group_id,), reply, NotCoordinator("The coordinator is stopping."))
