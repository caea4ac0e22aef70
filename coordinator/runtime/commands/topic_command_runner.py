"""Commands about topics, group configs, ACLs and quotas, carried out for all shards."""

from __future__ import annotations

from collections.abc import Callable

from coordinator.runtime.api import Reply, ignore_answer
from coordinator.runtime.commands.apply import Apply
from coordinator.runtime.commit.shard_context import ShardContext
from coordinator.runtime.topics.topic_images import CATALOGUE, TopicCatalogueRuntime
from model.commands.command import ServerCommand
from model.commands.topics import ReplaceTopics
from model.errors import GroupError


class TopicCommands:
    """Carries out the commands. ``delete_offsets`` is called after each: topics may be deleted."""

    def __init__(
        self,
        context: ShardContext,
        catalogue: TopicCatalogueRuntime,
        apply: Apply,
        *,
        delete_offsets: Callable[[], None],
    ) -> None:
        self._context = context
        self._catalogue = catalogue
        self._apply = apply
        self._delete_offsets = delete_offsets

    def submit(self, command: ServerCommand, reply: Reply) -> None:
        """Handle, replay and gather a command; the response is sent when it is durable."""
        if isinstance(command, ReplaceTopics):
            self._apply.topics(command, reply)
            return
        try:
            outcome = self._catalogue.compute(command, self._context.check_space)
        except GroupError as error:
            self._context.answer((CATALOGUE,), reply, error)
            return
        self._apply.catalogue(outcome, reply)
        self._delete_offsets()

    def begin_grace(self) -> None:
        """Keep all offsets for one retention period from now."""
        self._apply.catalogue(self._catalogue.compute_grace(), ignore_answer)
