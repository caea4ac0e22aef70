"""Answers what a change would do to a group.

The group is copied on the loop, in slices; what becomes of the copy is computed on a thread of its
own, so that no rebalance waits for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from coordinator.core.state.classic.classic_group import ClassicGroup
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.shard import Shard
from coordinator.core.whatif.changed_copy import ChangedCopy
from coordinator.core.whatif.group_copy import copy_group
from coordinator.core.whatif.question import CONSUMER, check_what_if
from coordinator.core.whatif.what_if import compute_answer, find_classic
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.clock import Cancellable, Scheduler, SteadyClock
from coordinator.runtime.commit.shard_context import ShardContext
from coordinator.runtime.loop.slices import Steps
from model.commands.what_if import ComputeWhatIf
from model.errors import (
    CoordinatorNotAvailable,
    GroupError,
    GroupIdNotFound,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownServerError,
)
from model.what_if import WhatIfAnswer
from muster.assignors.registry import Assignors
from translator.upgrade import compute_converted

SLICE: Final = 50
"""Members copied per iteration, each in some 30 µs."""
ATTEMPTS: Final = 5
"""How often a group is copied that changes meanwhile."""
RUNNING_MAX: Final = 2
"""How many are computed at a time."""
HUNG_MAX: Final = 4
"""How many may run on that nobody waits for any more: a custom assignor may hang for ever."""
WAITING_MAX: Final = 50
TIME_LIMIT_MS: Final = 25_000


@dataclass(eq=False, slots=True)
class _Asked:
    """A question that is not answered yet."""

    command: ComputeWhatIf
    reply: Reply
    is_answered: bool = False
    is_running: bool = False
    is_hung: bool = False
    timer: Cancellable | None = None


class WhatIfs:
    """Answers ``ComputeWhatIf``, a few at a time, each within a time limit."""

    def __init__(
        self,
        context: ShardContext,
        scheduler: Scheduler,
        clock: SteadyClock,
        assignors: Assignors,
    ) -> None:
        self._context = context
        self._scheduler = scheduler
        self._clock = clock
        self._assignors = assignors
        self._running = 0
        self._hung = 0
        self._waiting: deque[_Asked] = deque()

    def submit(self, command: ComputeWhatIf, reply: Reply) -> None:
        """Answer now or later; with very many questions waiting, refuse."""
        if len(self._waiting) >= WAITING_MAX:
            full = CoordinatorNotAvailable("Very many questions wait: ask again later.")
            self._context.answer((command.group_id,), reply, full)
            return
        asked = _Asked(command, reply)
        asked.timer = self._scheduler.call_later_ms(TIME_LIMIT_MS, partial(self._give_up, asked))
        self._waiting.append(asked)
        self._start_next()

    def _start_next(self) -> None:
        while self._waiting and self._running < RUNNING_MAX:
            asked = self._waiting.popleft()
            if not asked.is_answered:
                self._running += 1
                asked.is_running = True
                self._context.slices.run(self._copy(asked), partial(self._computed, asked))

    def _copy(self, asked: _Asked) -> Steps[None]:
        """Copy the group, and begin to compute."""
        command = asked.command
        shard = self._context.shard_of(command.group_id)
        try:
            for _ in range(ATTEMPTS):
                copy = yield from self._copy_group(shard, command)
                if copy is not None:
                    work = partial(_compute, copy, lambda: asked.is_answered)
                    self._scheduler.run_apart(work, partial(self._computed, asked))
                    return
            raise RebalanceInProgress(
                f"Group {command.group_id} changes all the time: ask when its rebalance is over."
            )
        except GroupError as error:
            self._computed(asked, error)

    def _copy_group(self, shard: Shard, command: ComputeWhatIf) -> Steps[ChangedCopy | None]:
        """The copy; ``None`` if the group has changed meanwhile."""
        classic_group = shard.classic_group(command.group_id)
        if command.question.protocol == CONSUMER and classic_group is not None:
            return (yield from self._copy_classic_group(shard, classic_group, command))
        group = check_what_if(shard, command.question, self._assignors)
        image, revision = shard.image, group.revision

        def is_as_it_was() -> bool:
            is_there = shard.consumer_groups.get(command.group_id) is group
            return is_there and group.revision == revision and shard.image is image

        return (yield from self._copy_in_slices(shard, group, command, is_as_it_was))

    def _copy_classic_group(
        self, shard: Shard, classic_group: ClassicGroup, command: ComputeWhatIf
    ) -> Steps[ChangedCopy | None]:
        """The copy of a classic group as the consumer group that it would become."""
        members, image = tuple(classic_group.members.values()), shard.image
        try:
            converted = yield from compute_converted(shard, classic_group)
        except GroupIdNotFound as error:
            raise InconsistentGroupProtocol(str(error)) from error
        is_there = shard.classic_group(command.group_id) is classic_group
        if not is_there or tuple(classic_group.members.values()) != members:
            return None
        if shard.image is not image:
            return None
        group = check_what_if(converted, command.question, self._assignors)
        # Nobody else has the converted one.
        return (yield from self._copy_in_slices(converted, group, command, lambda: True))

    def _copy_in_slices(
        self,
        shard: Shard,
        group: ConsumerGroup,
        command: ComputeWhatIf,
        is_as_it_was: Callable[[], bool],
    ) -> Steps[ChangedCopy | None]:
        """The copy; ``None`` once the group is not as it was."""
        classic = find_classic(group)
        copied = shard
        for number, copy in enumerate(copy_group(shard, group), 1):
            copied = copy
            if number % SLICE:
                continue
            yield
            if not is_as_it_was():
                return None
        return ChangedCopy(copied, command.question, self._assignors, self._clock.now(), classic)

    def _computed(self, asked: _Asked, result: WhatIfAnswer | BaseException | None) -> None:
        asked.is_running = False
        if asked.is_hung:
            self._hung -= 1
        else:
            self._running -= 1
        match result:
            case None:
                pass
            case WhatIfAnswer() | GroupError():
                self._answer(asked, result)
            case BaseException():
                self._answer(asked, UnknownServerError(repr(result)))
        self._start_next()

    def _give_up(self, asked: _Asked) -> None:
        if asked.is_answered:
            return
        limit_s = TIME_LIMIT_MS // 1_000
        self._answer(asked, CoordinatorNotAvailable(f"There is no answer within {limit_s} s."))
        if asked.is_running and self._hung < HUNG_MAX:
            # A thread cannot be ended: others take its place.
            asked.is_hung = True
            self._hung += 1
            self._running -= 1
            self._start_next()

    def _answer(self, asked: _Asked, answer: Answer) -> None:
        if not asked.is_answered:
            asked.is_answered = True
            if asked.timer is not None:
                asked.timer.cancel()
            self._context.answer((asked.command.group_id,), asked.reply, answer)


def _compute(copy: ChangedCopy, is_over: Callable[[], bool]) -> WhatIfAnswer | None:
    """The answer, computed on a thread; ``None`` if nobody waits for it any more."""
    for answer in compute_answer(copy):
        if answer is not None:
            return answer
        if is_over():
            return None
    return None
