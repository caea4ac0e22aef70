"""The coordinator runtime: the shell around the pure core.

It performs the caller's duties that ``coordinator.core`` lists: commands run one at a time, their
records are replayed at once and written in one batch with the command's side records, and a
response is held until everything it shows is durable. ``coordinator.runtime.parts`` wires the parts
together.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.offsets.deleted_topics import DeletedTopics
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.shard import Shard
from coordinator.dispatch.command_table import COMMANDS, Route
from coordinator.runtime.api import Reply, await_answer, ignore_answer
from coordinator.runtime.audit import NO_AUDIT, Audit
from coordinator.runtime.authorizer import AclAuthorizer, AllowAll, Authorizer
from coordinator.runtime.clock import AsyncioScheduler, Clock, Scheduler, SteadyClock, SystemClock
from coordinator.runtime.commands.audited_commands import AUDITED
from coordinator.runtime.commands.commit_ticket import CommitTicket, make_commit_ticket
from coordinator.runtime.commands.stopped_shards import log_evidence
from coordinator.runtime.commit.process_end import exit_process
from coordinator.runtime.loading.command_gate import Serving
from coordinator.runtime.loading.load_in_progress import LoadInProgress
from coordinator.runtime.loading.loading import Loading
from coordinator.runtime.loading.shard_loader import load_places, read_last_timestamp
from coordinator.runtime.loading.token_start import TokenStart
from coordinator.runtime.loop.stats import Stats
from coordinator.runtime.loop.write_space import Space
from coordinator.runtime.members.group_notices import GroupChanges
from coordinator.runtime.members.heartbeat_ticket import Ticket, make_ticket
from coordinator.runtime.members.member_watches import RegisteredWatch, ignore_drop
from coordinator.runtime.parts import Parts, Surroundings
from coordinator.runtime.targets.client_assignments import ClientAssignments
from coordinator.runtime.topics.topic_images import TopicsCallback
from coordinator.runtime.trips.trips import Trips
from model.access.scram import FAKE_SALT_SECRET_BYTES
from model.commands.command import Command
from model.commands.offsets import OffsetCommit
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition, MemberId, TopicName, compute_log_partition
from model.places import GroupPlace
from model.responses.response import Response
from model.topics import Topic, TopicImage
from muster.assignors.registry import ASSIGNORS, Assignors
from security.acl_index import AclIndex
from security.quotas.quota_index import QuotaIndex
from security.scram_credentials import ScramCredentials
from storage.log_store import LogStore


class Runtime:
    """The coordinator of one process. Implements ``coordinator.runtime.api.Coordinator``."""

    parts: Parts
    """Created at start."""

    def __init__(
        self,
        store: LogStore,
        settings: CoordinatorSettings,
        *,
        clock: Clock | None = None,
        scheduler: Scheduler | None = None,
        free_bytes: Callable[[], int] | None = None,
        authorizer: Authorizer | None = None,
        quotas: QuotaIndex | None = None,
        scram_credentials: ScramCredentials | None = None,
        audit: Audit = NO_AUDIT,
        assignors: Assignors = ASSIGNORS,
        on_failure: Callable[[BaseException], None] = exit_process,
        keep_evidence: Callable[[LogPartition, str], None] = log_evidence,
        trips: Trips | None = None,
    ) -> None:
        self.settings = settings
        self.cluster_id = store.cluster_id
        self.log_partitions = store.partitions
        self.stats = Stats()
        self.liveness = Liveness(settings.group_consumer_session_timeout_ms)
        self._clock = SteadyClock(clock or SystemClock())
        self._scheduler = scheduler
        self._shards: list[Shard] = []
        self._around = Surroundings(
            store,
            settings,
            self._clock,
            Space(free_bytes, settings.log_min_free_bytes),
            authorizer or AllowAll(),
            authorizer.acls if isinstance(authorizer, AclAuthorizer) else AclIndex(),
            quotas if quotas is not None else QuotaIndex(),
            ScramCredentials() if scram_credentials is None else scram_credentials,
            secrets.token_bytes(FAKE_SALT_SECRET_BYTES),
            audit,
            assignors,
            self.stats,
            self.liveness,
            self._shards,
            on_failure,
            keep_evidence,
            trips,
        )
        self._audited = frozenset[type]() if audit is NO_AUDIT else AUDITED
        self._has_stopped = False
        self._serving = Serving(self.submit)
        self._routes: dict[Route, Callable[[Any, Reply], None]] = {}

    # ------------------------------------------------------------------------- starting, stopping

    async def start(self, topics: Sequence[Topic] = ()) -> None:
        """Start serving. Each group is served as soon as it is loaded; see ``loaded``.

        ``topics`` are those of a catalogue elsewhere (``ReplaceTopics``). The groups must be loaded
        with them, or else their partitions would be taken away.
        """
        loop = asyncio.get_running_loop()
        if self._scheduler is None:
            self._scheduler = AsyncioScheduler(loop)
        self.begin_load(topics)

    def begin_load(self, topics: Sequence[Topic] = ()) -> None:
        """``start`` for a caller that passed its own scheduler."""
        assert self._scheduler is not None, "pass a scheduler, or call start() on a loop"
        self._prepare(self._scheduler, topics).begin()

    async def loaded(self) -> None:
        """Wait until every shard is loaded. Raises the store's error if loading failed."""
        await self._serving.loading.wait()

    def load(self, topics: Sequence[Topic] = ()) -> None:
        """Load all shards from the store synchronously, then serve."""
        assert self._scheduler is not None, "pass a scheduler, or call start() on a loop"
        self._prepare(self._scheduler, topics).finish()

    def _prepare(self, scheduler: Scheduler, topics: Sequence[Topic] = ()) -> Loading:
        """Create the parts and an empty shard per log partition; loading fills the shards."""
        store = self._around.store
        self._clock.note_found(read_last_timestamp(store))
        self._make_parts(scheduler)
        self.parts.catalogue.replace_topics(topics, ())
        self._shards += [self._make_shard(LogPartition(n)) for n in range(self.log_partitions)]
        load_places(store, self._shards)
        loading = Loading(
            store,
            self.parts.context.slices.beside(),
            self._clock,
            self.stats,
            self.liveness,
            self._shards,
            token_start=TokenStart(store, self._clock, self.parts.catalogue.token_start_ms),
            make_shard=self._make_shard,
            arm_timers=self.parts.timers.arm,
            on_loaded=self._go_on,
            on_finished=self._note_loaded,
        )
        in_progress = LoadInProgress(loading.left, self.log_partitions, self.stats)
        self._serving.begin(loading, in_progress)
        return loading

    def _make_parts(self, scheduler: Scheduler) -> None:
        parts = self.parts = Parts(self._around, scheduler, self._submit_internal)
        parts.stopped.on_stopped = self._note_stopped
        self._routes = {
            Route.MEMBER: parts.turns.submit,
            Route.SHARD: parts.groups.submit,
            Route.COMMIT: parts.groups.commit,
            Route.FETCH: parts.offsets.fetch,
            Route.TRANSACTION: parts.offsets.change,
            Route.LIST_TRANSACTIONS: parts.offsets.list_transactions,
            Route.DELETION: parts.deletion.submit,
            Route.RESET: parts.resets.submit,
            Route.READ: parts.reads.submit,
            Route.WHAT_IF: parts.what_ifs.submit,
            Route.EXPLAIN: parts.reads.explain,
            Route.TOPICS: parts.topics.submit,
        }
        trips = self._around.trips
        if trips is not None:
            self._routes = {kind: trips.follow(route) for kind, route in self._routes.items()}

    def _make_shard(self, partition: LogPartition) -> Shard:
        catalogue = self.parts.catalogue
        return Shard(partition, self.settings, catalogue.image, catalogue.group_settings)

    def _go_on(
        self,
        to_refresh: Collection[GroupId],
        without_target: Collection[GroupId],
        resets: Collection[GroupId],
    ) -> None:
        """Resume the work that the last process left unfinished in a shard that is now loaded."""
        self.parts.refresh.refresh(to_refresh)
        for group_id in without_target:
            self.parts.targets.mark(group_id)
        for group_id in resets:
            self.parts.finish_reset(group_id)

    def _note_loaded(self) -> None:
        self._serving.note_loaded()
        self.parts.begin()

    def ready(self) -> bool:
        return self._serving.is_ready

    @property
    def partitions_loading(self) -> Collection[LogPartition]:
        """The log partitions whose groups are not loaded yet."""
        return self._serving.loading.left

    def is_serving(self) -> bool:
        return self._serving.is_started and not self._serving.is_stopping

    async def stop(self) -> None:
        """Refuse new commands, flush, answer what was accepted."""
        self._serving.stop()
        if not self._serving.is_started:
            return
        self.parts.stop()
        while self.parts.is_busy:  # noqa: ASYNC110 - once, at the end; no event to keep up
            await asyncio.sleep(0.001)
        self.parts.finish()
        if isinstance(self._scheduler, AsyncioScheduler):
            self._scheduler.close()

    # ----------------------------------------------------------------------------------- commands

    def partition_of(self, group_id: GroupId) -> LogPartition:
        return compute_log_partition(group_id, self.log_partitions)

    async def call(self, command: Command) -> Response:
        return await await_answer(partial(self.submit, command))

    def submit(self, command: Command, reply: Reply) -> None:
        kind = type(command)
        counts, name = self.stats.commands, kind.__name__
        counts[name] = counts.get(name, 0) + 1
        if not self._serving.is_ready and self._serving.refuse(command, reply):
            return
        if self._has_stopped and self.parts.stopped.refuse(command, reply):
            return
        route = self._routes[COMMANDS[kind].route]
        if kind in self._audited:
            self.parts.changes.submit(route, command, reply)
            return
        route(command, reply)

    def _note_stopped(self) -> None:
        """A shard is stopped: commits no longer go past ``submit``, those of other shards too."""
        self._has_stopped = True
        self.parts.commits.is_open = False

    def _submit_internal(self, command: Command, reply: Reply = ignore_answer) -> None:
        if not self._serving.is_stopping:
            self.submit(command, reply)

    # ------------------------------------------------------------------------ for the front ends

    @property
    def image(self) -> TopicImage:
        return self.parts.catalogue.durable_image

    @property
    def deleted_topics(self) -> DeletedTopics:
        return self.parts.catalogue.deleted_topics

    @property
    def client_assignments(self) -> ClientAssignments:
        return self.parts.targets.client_assignments

    @property
    def scram_credentials(self) -> ScramCredentials:
        """The credentials in force."""
        return self._around.scram_credentials

    @property
    def fake_salt_secret(self) -> bytes:
        """What the salts of unknown users are computed from, so that they look like others.

        It is durable from the first change of credentials on; without any, all users are unknown.
        """
        durable = self._around.scram_credentials.fake_salt_secret
        return self._around.new_fake_salt_secret if durable is None else durable

    def on_topics_changed(self, callback: TopicsCallback) -> None:
        self.parts.catalogue.on_changed(callback)

    def settings_of(self, group_id: GroupId) -> CoordinatorSettings:
        return self.parts.catalogue.group_settings.get(group_id, self.settings)

    def ticket(self, group_id: GroupId, member_id: MemberId) -> Ticket | None:
        if group_id in self.parts.durability.groups:
            return None
        group = self._shard_of(group_id).consumer_groups.get(group_id)
        return make_ticket(group, self.liveness.get(group_id, member_id), self.liveness)

    def commit_ticket(self, command: OffsetCommit) -> CommitTicket | None:
        # Each commit of who is no member is looked at: an administrator may be moving offsets.
        is_noted = command.member_epoch is None and OffsetCommit in self._audited
        if is_noted or self._has_stopped or not self.ready():
            return None
        return make_commit_ticket(self.parts.commits, self._shard_of(command.group_id), command)

    def touch(self, group_id: GroupId, member_id: MemberId) -> bool:
        entry = self.liveness.get(group_id, member_id)
        return entry is not None and self.liveness.renew_lease(entry, self._clock.monotonic_ms())

    def has_member(self, group_id: GroupId, member_id: MemberId) -> bool:
        return self._shard_of(group_id).has_consumer(group_id, member_id)

    def holds_member(self, group_id: GroupId, member_id: MemberId) -> bool:
        return self._shard_of(group_id).holds_member(group_id, member_id)

    def holds_group(self, group_id: GroupId) -> bool:
        return self._shard_of(group_id).holds_group(group_id)

    def place_of(self, group_id: GroupId) -> GroupPlace | None:
        return self._shard_of(group_id).places.get(group_id)

    def find_places(self) -> dict[GroupId, GroupPlace]:
        """Where groups are that are not, or not only, the cluster's."""
        return {
            group_id: place for shard in self._shards for group_id, place in shard.places.items()
        }

    def find_subscribed_names(
        self, group_id: GroupId, member_id: MemberId
    ) -> Collection[TopicName]:
        group = self._shard_of(group_id).consumer_groups.get(group_id)
        member = None if group is None else group.member(member_id)
        if member is None or member.metadata is None:
            return ()
        return member.metadata.subscribed_topic_names

    def promise_session(self, group_id: GroupId, member_id: MemberId) -> bool:
        entry = self.liveness.get(group_id, member_id)
        return entry is not None and self.liveness.note_lease(entry)

    def watch(
        self,
        group_id: GroupId,
        member_id: MemberId,
        on_change: Callable[[], None],
        speaker: int = 0,
        on_dropped: Callable[[], None] = ignore_drop,
    ) -> RegisteredWatch:
        return self.parts.watches.add(group_id, member_id, on_change, speaker, on_dropped)

    def changes_of(self, group_id: GroupId) -> GroupChanges:
        return GroupChanges(self.parts.notices, group_id)

    # ---------------------------------------------------------- for metrics, and for the simulator

    def groups(self) -> Iterator[ConsumerGroup]:
        """All consumer groups."""
        for shard in self._shards:
            yield from shard.consumer_groups.values()

    @property
    def shards(self) -> list[Shard]:
        return self._shards

    @property
    def waiting_members(self) -> int:
        """How many requests of members of classic groups wait for the other members."""
        return len(self.parts.waiting)

    def find_rebalance_ages_ms(self) -> Iterator[tuple[bool, int]]:
        """Of each group that rebalances: whether it is classic, and for how long (ms) it does."""
        now_ms = self._clock.now().wall_ms
        for going in self.parts.ledger.going_on.values():
            yield going.is_classic, max(now_ms - going.unsettled_wall_ms, 0)

    def _shard_of(self, group_id: GroupId) -> Shard:
        return self._shards[compute_log_partition(group_id, self.log_partitions)]
