"""Refreshes groups after a change of their topics, and retries refused refreshes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice

from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.loop.slices import REFUSED_RETRY_MS, Paced, Slices
from model.caller import INTERNAL
from model.commands.command import Command
from model.commands.consumer import RefreshTopics
from model.errors import GroupError, LogPartitionStopped
from model.ids import GroupId

SLICE = 100
"""Groups refreshed per event-loop iteration."""


class TopicRefresh:
    """Sends ``RefreshTopics``, and again after a refusal (the disk may have been full)."""

    def __init__(self, slices: Slices, submit: Callable[[Command, Reply], None]) -> None:
        self._slices = slices
        self._submit = submit

    def refresh(self, group_ids: Iterable[GroupId]) -> None:
        """Refresh these groups, in slices if they are many."""
        self._slices.run(self._refresh(group_ids))

    def _refresh(self, group_ids: Iterable[GroupId]) -> Paced[None]:
        left = iter(group_ids)
        while taken := tuple(islice(left, SLICE)):
            for group_id in taken:
                self._submit(RefreshTopics(INTERNAL, group_id), partial(self._note, group_id))
            if len(taken) == SLICE:
                yield None

    def _note(self, group_id: GroupId, answer: Answer) -> None:
        if isinstance(answer, GroupError) and not isinstance(answer, LogPartitionStopped):
            self._slices.run(self._refresh_later(group_id))

    def _refresh_later(self, group_id: GroupId) -> Paced[None]:
        yield REFUSED_RETRY_MS
        yield from self._refresh((group_id,))
