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
from model.ids import GroupId, TopicName

SLICE = 100
"""Groups refreshed per event-loop iteration."""


class TopicRefresh:
    """Sends ``RefreshTopics``, and again after a refusal (the disk may have been full)."""

    def __init__(self, slices: Slices, submit: Callable[[Command, Reply], None]) -> None:
        self._slices = slices
        self._submit = submit

    def refresh(self, group_ids: Iterable[GroupId], name: TopicName | None = None) -> None:
        """Refresh these groups, in slices if they are many; ``name`` is the topic that changed."""
        self._slices.run(self._refresh(group_ids, name))

    def _refresh(self, group_ids: Iterable[GroupId], name: TopicName | None) -> Paced[None]:
        left = iter(group_ids)
        while taken := tuple(islice(left, SLICE)):
            for group_id in taken:
                command = RefreshTopics(INTERNAL, group_id, name)
                self._submit(command, partial(self._note, command))
            if len(taken) == SLICE:
                yield None

    def _note(self, command: RefreshTopics, answer: Answer) -> None:
        if isinstance(answer, GroupError) and not isinstance(answer, LogPartitionStopped):
            self._slices.run(self._refresh_later(command))

    def _refresh_later(self, command: RefreshTopics) -> Paced[None]:
        yield REFUSED_RETRY_MS
        yield from self._refresh((command.group_id,), command.topic_name)
