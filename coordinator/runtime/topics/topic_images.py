"""The topic catalogue at run time: takes commands, writes side records, publishes topic images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import structlog

from coordinator.core.groups.topic_records import (
    Catalogue,
    handle_server_command,
    replay_side,
)
from coordinator.core.offsets.deleted_topics import DeletedTopics
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.runtime.clock import SteadyClock
from coordinator.runtime.commit.durability import Durability
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.loading.shard_loader import load_catalogue
from model.commands.command import CatalogueCommand
from model.commands.topics import DeleteTopic
from model.commands.transactions import AllocateProducerId
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogOffset, LogPartition, TopicId, TopicName
from model.log.side_records import (
    ImportGraceKey,
    ImportGraceValue,
    SideRecord,
    TopicDeletionKey,
    TopicDeletionValue,
)
from model.responses.response import Done
from model.responses.transactions import ProducerIdResponse
from model.topics import Topic, TopicImage, compute_image_changed, compute_settled_image
from security.acl_index import AclIndex
from security.quotas.quota_index import QuotaIndex
from security.scram_credentials import ScramCredentials
from storage.log_store import LogStore

CATALOGUE = GroupId("\0catalogue")
"""The key under which the catalogue's durability is tracked; no client can use it as a group id."""

NO_PARTITION = LogPartition(0)
"""Placeholder for entries that write side records only."""

log = structlog.get_logger()

TopicsCallback = Callable[[Sequence[Topic]], None]
"""Gets the deleted topics."""


class TopicCatalogueRuntime:
    """The single writer of the topics; a shard is that of its groups.

    ``state`` is loaded from the store.
    """

    def __init__(
        self,
        store: LogStore,
        writer: Writer,
        durability: Durability,
        clock: SteadyClock,
        state: Catalogue,
    ) -> None:
        self._store = store
        self._writer = writer
        self._durability = durability
        self._clock = clock
        self._state = state
        self._images: dict[int, TopicImage] = {}
        self._callbacks: list[TopicsCallback] = []
        load_catalogue(store, self._state)
        self.durable_image = self._state.image
        self._deleted: DeletedTopics | None = None
        self._gone: dict[int, list[Topic]] = {}
        """The topics deleted in each generation."""
        self._unsettled: dict[TopicId, int] = {}
        """The generation of each deletion that is not durable yet."""
        self._next_producer_id = self._state.producer_id_end

    @property
    def image(self) -> TopicImage:
        """The current topics in memory, durable or not; group commands are handled against them."""
        return self._state.image

    @property
    def deleted(self) -> list[tuple[TopicId, TopicDeletionValue]]:
        """Deleted topics whose committed offsets are still to be tombstoned."""
        return list(self._state.deleted.items())

    @property
    def deleted_topics(self) -> DeletedTopics:
        """The durably deleted topics whose offsets must not be shown."""
        if self._deleted is None:
            settled = [each for each in self.deleted if each[0] not in self._unsettled]
            self._deleted = DeletedTopics(self.durable_image, settled)
        return self._deleted

    @property
    def imported_at_ms(self) -> int:
        """The wall time of the last log import; 0 if there was none."""
        return self._state.imported_at_ms

    @property
    def token_start_ms(self) -> int:
        """The wall time that the tokens of the start before this began at; 0 if there was none."""
        return self._state.token_start_ms

    @property
    def longest_session_timeouts_ms(self) -> Mapping[GroupId, int]:
        """The longest earlier session timeout of each group that has since shortened it."""
        return self._state.longest_session_timeouts_ms

    @property
    def group_settings(self) -> Mapping[GroupId, CoordinatorSettings]:
        """The configs in force for groups with overrides; a live view."""
        return self._state.group_settings

    @property
    def group_configs(self) -> Mapping[GroupId, Mapping[str, str]]:
        """The configs that are set on groups; a live view."""
        return self._state.group_configs

    @property
    def scram_credentials(self) -> ScramCredentials:
        """The credentials of users; a live view."""
        return self._state.scram_credentials

    @property
    def quotas(self) -> QuotaIndex:
        """The quotas in force; a live view."""
        return self._state.quotas

    @property
    def acls(self) -> AclIndex:
        """The ACLs in force; a live view."""
        return self._state.acls

    def on_changed(self, callback: TopicsCallback) -> None:
        """Register a callback for each durable change; it gets the deleted topics."""
        self._callbacks.append(callback)

    def replace_topics(
        self, changed: Iterable[Topic], gone: Iterable[TopicName]
    ) -> tuple[list[TopicName], list[Topic]]:
        """Topics of a catalogue elsewhere changed. Nothing is written: they count as durable.

        Returns the names whose topics are different now, and the topics that are gone.
        """
        by_name = self._state.image.by_name
        new = {topic.name: topic for topic in changed if by_name.get(topic.name) != topic}
        lost = [name for name in dict.fromkeys(gone) if name in by_name and name not in new]
        replaced = [old for name in (*new, *lost) if (old := by_name.get(name)) is not None]
        image = compute_image_changed(self._state.image, new.values(), lost)
        if new or lost:
            # A change of the store's own topics that is not durable yet is in this image, too.
            self._images.clear()
            self._state.image = self.durable_image = image
            self._deleted = None
        dropped = [old for old in replaced if image.by_id.get(old.topic_id) is None]
        return [*new, *lost], dropped

    def tell(self, gone: Sequence[Topic]) -> None:
        """Call all callbacks: topics changed, and these are gone."""
        for callback in self._callbacks:
            try:
                callback(gone)
            except Exception:
                # Other callbacks, and other state that becomes durable, must still be handled.
                log.exception("telling_of_topics_failed")

    def compute(self, command: CatalogueCommand, check: Callable[[Outcome], None]) -> Outcome:
        """Handle the command. Raises its ``GroupError`` or that of ``check``."""
        match command:
            case AllocateProducerId():
                return self._allocate_producer_id(command, check)
            case DeleteTopic():
                log_ends = self._read_log_ends()
                outcome = handle_server_command(self._state, command, self._clock.now(), log_ends)
            case _:
                outcome = handle_server_command(self._state, command, self._clock.now())
        check(outcome)
        return outcome

    def _read_log_ends(self) -> tuple[LogOffset, ...]:
        """The ends of all log partitions, once gathered records are written.

        Offsets below them belong to the deleted topic.
        """
        self._writer.check_written()
        numbers = range(self._store.partitions)
        return tuple(self._store.next_offset(LogPartition(number)) for number in numbers)

    def replay(self, outcome: Outcome) -> None:
        """Replay the side records, as part of the batch being gathered."""
        before = self._state.image
        generation = self._writer.generation
        for record in outcome.side:
            replay_side(self._state, record)
            if isinstance(record.key, TopicDeletionKey) and record.value is not None:
                topic_id = record.key.topic_id
                self._unsettled[topic_id] = generation
                self._gone.setdefault(generation, []).append(before.by_id[topic_id])
        self._deleted = None
        self._durability.note_group(CATALOGUE, generation)
        if self._state.image is not before:
            self._images[generation] = self._state.image

    def _allocate_producer_id(
        self, command: AllocateProducerId, check: Callable[[Outcome], None]
    ) -> Outcome:
        if self._next_producer_id < self._state.producer_id_end:
            outcome = Outcome(response=ProducerIdResponse(self._next_producer_id))
            self._next_producer_id += 1
        else:
            outcome = handle_server_command(self._state, command, self._clock.now())
            check(outcome)
            self._next_producer_id = self._state.producer_id_end + 1
        return outcome

    def show_to(self, shards: Iterable[Shard]) -> None:
        """Give the shards the current topic image."""
        for shard in shards:
            shard.image = self.image

    def compute_grace(self) -> Outcome:
        """Keep all offsets for one retention period from now, as after an import."""
        grace = SideRecord(ImportGraceKey(), ImportGraceValue(self._clock.now().wall_ms))
        return Outcome(side=(grace,), response=Done())

    def settle(self, generation: int) -> bool:
        """Publish the image of a generation that became durable; whether ``image`` was replaced."""
        self._settle_deletions(generation)
        image = self._images.pop(generation, None)
        if image is None:
            return False
        is_last = image is self._state.image
        if is_last:
            image = self._state.image = compute_settled_image(image)
        self.durable_image = image
        self._deleted = None
        self.tell(self._gone.pop(generation, ()))
        return is_last

    def _settle_deletions(self, generation: int) -> None:
        if self._unsettled:
            self._deleted = None
            self._unsettled = {
                topic_id: since for topic_id, since in self._unsettled.items() if since > generation
            }
