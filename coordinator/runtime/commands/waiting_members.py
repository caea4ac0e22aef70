"""Outcomes of classic groups: the next value of a group, and answers that wait for others.

A join waits until all have joined, a sync until the leader has assigned. Who waits is kept here, by
group and member; that and when they are answered is the core's to say.
"""

from __future__ import annotations

from collections.abc import Callable

from coordinator.core.state.classic_group import Phase
from coordinator.core.state.outcome import Effect, Outcome, Release, Wait
from coordinator.core.state.shard import Shard
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.commit.writer import Waited, Writer, make_entry
from model.errors import NotCoordinator, RebalanceInProgress
from model.ids import GroupId, MemberId


class ClassicGroups:
    """Carries out what commands of classic groups come to, once their records are replayed.

    ``answer`` gives an answer when all that it shows of its group is durable.
    """

    def __init__(
        self,
        writer: Writer,
        *,
        carry_out_effect: Callable[[Effect], None],
        answer: Callable[[tuple[GroupId, ...], Reply, Answer], None],
    ) -> None:
        self._writer = writer
        self._carry_out_effect = carry_out_effect
        self._answer = answer
        self._waiting: dict[tuple[GroupId, MemberId, Phase], Reply] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def carry_out(
        self, shard: Shard, group_id: GroupId, outcome: Outcome, reply: Reply, waited: Waited
    ) -> bool:
        """Put the next value in its place, write, and answer those who are to be answered.

        ``False`` where the outcome is of a group of another type: of those who waited while it was
        a classic group each is answered, and the rest is left.
        """
        if outcome.classic is None:
            self._release_all(group_id, outcome.releases)
            return False
        shard.live_classic_groups[group_id] = outcome.classic
        for effect in outcome.effects:
            self._carry_out_effect(effect)
        if outcome.records:
            self._writer.append(make_entry(shard.partition, outcome, None, waited))
        if outcome.wait is not None:
            self._wait(group_id, outcome.wait, reply)
        self._release_all(group_id, outcome.releases)
        if outcome.response is not None:
            self._answer((group_id,), reply, outcome.response)
        return True

    def _wait(self, group_id: GroupId, wait: Wait, reply: Reply) -> None:
        """A member waits for one answer at a time: who asked before it is told to ask again."""
        key = (group_id, wait.member_id, wait.phase)
        older = self._waiting.get(key)
        self._waiting[key] = reply
        if older is not None:
            error = RebalanceInProgress("The member has asked again since.")
            self._answer((group_id,), older, error)

    def _release_all(self, group_id: GroupId, releases: tuple[Release, ...]) -> None:
        for release in releases:
            self._release(group_id, release)

    def _release(self, group_id: GroupId, release: Release) -> None:
        reply = self._waiting.pop((group_id, release.member_id, release.phase), None)
        if reply is not None:
            self._answer((group_id,), reply, release.answer)

    def stop(self) -> None:
        """Nobody waits any longer (row J10)."""
        waiting, self._waiting = self._waiting, {}
        for (group_id, _, _), reply in waiting.items():
            self._answer((group_id,), reply, NotCoordinator("The coordinator is stopping."))
