"""Groups look at their topics again after a change, and again if that was refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice

from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.clock import Scheduler
from model.commands import INTERNAL, Command, RefreshTopics
from model.errors import GroupError
from model.ids import GroupId

RETRY_MS = 1_000
SLICE = 100
"""So many groups look in one turn."""


class TopicRefresh:
    """Sends ``RefreshTopics``; a refusal for want of space is no reason to forget a topic."""

    def __init__(self, scheduler: Scheduler, submit: Callable[[Command, Reply], None]) -> None:
        self._scheduler = scheduler
        self._submit = submit

    def refresh(self, group_ids: Iterable[GroupId]) -> None:
        """Let these groups look, in slices if they are many."""
        self._refresh_slice(iter(group_ids))

    def _refresh_slice(self, left: Iterator[GroupId]) -> None:
        group_ids = tuple(islice(left, SLICE))
        if len(group_ids) == SLICE:
            self._scheduler.call_soon(lambda: self._refresh_slice(left))
        for group_id in group_ids:
            self._submit(RefreshTopics(INTERNAL, group_id), partial(self._note, group_id))

    def _note(self, group_id: GroupId, answer: Answer) -> None:
        if isinstance(answer, GroupError):
            self._scheduler.call_later_ms(RETRY_MS, lambda: self.refresh((group_id,)))
