"""The runtime: shards, batching, timers, loading, watching. The shell around the pure core.

It carries out the duties that ``coordinator.core`` lists: one command after another, records
replayed at once and written in one batch with all else of their command, answers held until what
they show is durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from functools import partial

import structlog

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.offsets.deleted_topics import DeletedTopics
from coordinator.core.state.consumer_group import ConsumerGroup
from coordinator.core.state.outcome import (
    Outcome,
)
from coordinator.core.state.shard import Shard
from coordinator.dispatch.handle import ImmediateCommand, MemberCommand, ShardCommand, handle
from coordinator.runtime.api import Answer, Reply, await_answer, ignore_answer
from coordinator.runtime.authorizer import AllowAll, Authorizer
from coordinator.runtime.background import Background
from coordinator.runtime.clock import AsyncioScheduler, Clock, Scheduler, SteadyClock, SystemClock
from coordinator.runtime.commands.apply import Apply
from coordinator.runtime.commands.changed_configs import GroupSettingsChanges
from coordinator.runtime.commands.command_turns import Turns
from coordinator.runtime.commands.commit_ticket import CommitRoom, CommitTicket, make_commit_ticket
from coordinator.runtime.commands.conversions import Conversions
from coordinator.runtime.commands.effects import Effects
from coordinator.runtime.commands.group_reads import GroupReads
from coordinator.runtime.commands.replayer import Replayer
from coordinator.runtime.commands.waiting_members import WaitingMembers
from coordinator.runtime.commit.durability import Durability
from coordinator.runtime.commit.process_end import exit_process
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.loading.load_in_progress import LoadInProgress
from coordinator.runtime.loading.loading import Loading
from coordinator.runtime.loading.shard_loader import read_last_timestamp
from coordinator.runtime.loop.disk_space import Space
from coordinator.runtime.loop.slices import Slices
from coordinator.runtime.loop.stats import Stats
from coordinator.runtime.members.deadlines import Deadlines
from coordinator.runtime.members.heartbeat_ticket import Ticket, make_ticket
from coordinator.runtime.members.member_news import GroupNews
from coordinator.runtime.members.member_watches import RegisteredWatch, Watches, ignore_drop
from coordinator.runtime.members.missed_answers import note_missed_answer
from coordinator.runtime.members.timers import Timers
from coordinator.runtime.offsets.offset_commands import OffsetCommands
from coordinator.runtime.offsets.offset_deletion import OffsetDeletion
from coordinator.runtime.targets.client_assignments import LocalAssignments
from coordinator.runtime.targets.target_schedule import Targets
from coordinator.runtime.topics.regex_schedule import Regexes
from coordinator.runtime.topics.topic_images import CATALOGUE, TopicCatalogueRuntime, TopicsCallback
from coordinator.runtime.topics.topic_refresh import TopicRefresh
from model.commands import (
    Command,
    ConfigCommand,
    ConsumerGroupHeartbeat,
    DeleteGroup,
    DeleteOffsets,
    ListTransactions,
    OffsetCommit,
    OffsetFetch,
    ReadCommand,
    TopicCommand,
    TransactionCommand,
)
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import CoordinatorNotAvailable, GroupError, UnknownServerError
from model.ids import GroupId, LogPartition, MemberId, TopicName, compute_log_partition
from model.responses import Response
from model.topics import TopicImage
from muster.assignors.registry import ASSIGNORS, Assignors
from storage.log_store import LogStore

log = structlog.get_logger()


class Runtime:
    """The coordinator of one process. Implements ``coordinator.runtime.api.Coordinator``."""

    def __init__(
        self,
        store: LogStore,
        settings: CoordinatorSettings,
        *,
        clock: Clock | None = None,
        scheduler: Scheduler | None = None,
        free_bytes: Callable[[], int] | None = None,
        authorizer: Authorizer | None = None,
        assignors: Assignors = ASSIGNORS,
        on_failure: Callable[[BaseException], None] = exit_process,
    ) -> None:
        self.settings = settings
        self._assignors = assignors
        self.cluster_id = store.cluster_id
        self.log_partitions = store.partitions
        self.stats = Stats()
        self._store = store
        self._clock = SteadyClock(clock or SystemClock())
        self._scheduler = scheduler
        self._space = Space(free_bytes, settings.log_min_free_bytes)
        self._authorizer = authorizer or AllowAll()
        self._on_failure = on_failure
        self._shards: list[Shard] = []
        self._is_ready = False
        self._loading: Loading | None = None
        self._load_in_progress: LoadInProgress | None = None
        self._is_stopping = False
        self._durability = Durability()
        self.liveness = Liveness(settings.group_consumer_session_timeout_ms)

    # ------------------------------------------------------------------------- starting, stopping

    async def start(self) -> None:
        """Serve, each group from when it is loaded; ``loaded`` is when all are."""
        loop = asyncio.get_running_loop()
        if self._scheduler is None:
            self._scheduler = AsyncioScheduler(loop)
        self.begin_load()

    def begin_load(self) -> None:
        """``start`` for whoever has given a scheduler."""
        assert self._scheduler is not None, "without a loop a scheduler must be given"
        self._prepare(self._scheduler).begin()

    async def loaded(self) -> None:
        """Wait until all is loaded. Raises what the store raises that cannot be read."""
        assert self._loading is not None, "it was not started"
        await self._loading.wait()

    def load(self) -> None:
        """Load all shards from the store at once, and serve."""
        assert self._scheduler is not None, "without a loop a scheduler must be given"
        self._prepare(self._scheduler).finish()

    def _prepare(self, scheduler: Scheduler) -> Loading:
        """Everything but the groups, whose shards are empty and refused."""
        self._clock.note_found(read_last_timestamp(self._store))
        self._make_parts(scheduler)
        partitions = range(self.log_partitions)
        self._shards += [self._make_shard(LogPartition(number)) for number in partitions]
        loading = self._loading = Loading(
            self._store,
            scheduler,
            self._clock,
            self.stats,
            self.liveness,
            self._shards,
            make_shard=self._make_shard,
            arm_timers=self._timers.arm,
            on_loaded=self._go_on,
            on_finished=self._note_loaded,
        )
        self._load_in_progress = LoadInProgress(loading.left, self.log_partitions, self.stats)
        return loading

    def _make_shard(self, partition: LogPartition) -> Shard:
        catalogue = self._catalogue
        return Shard(partition, self.settings, catalogue.image, catalogue.group_settings)

    def _go_on(self, to_refresh: Collection[GroupId], without_target: Collection[GroupId]) -> None:
        """A shard is loaded: what was under way when the process ended goes on."""
        self._refresh.refresh(to_refresh)
        for group_id in without_target:
            self._targets.mark(group_id, 0)

    def _note_loaded(self) -> None:
        self._is_ready = True
        self._background.begin()
        self._targets.begin(self._catalogue.group_settings)

    def _make_parts(self, scheduler: Scheduler) -> None:
        self._writer = Writer(
            self._store,
            scheduler,
            self._clock,
            self.stats,
            self.settings.flush_records_max,
            before_write=lambda: self._turns.close_batch(),
            show_durable=self._show_durable,
            on_durable=self._on_durable,
            on_failure=self._on_failure,
        )
        self._catalogue = TopicCatalogueRuntime(
            self._store, self._writer, self._durability, self._clock, self.settings
        )
        self._targets = Targets(
            scheduler,
            self._clock,
            self.stats,
            self.settings,
            self._assignors,
            shard_of=self._shard_of,
            submit=lambda command: self._submit_to_shard(command, ignore_answer),
            request_flush=self._writer.request_flush,
        )
        self._turns = Turns(
            scheduler,
            self._writer,
            handle=self._submit_to_shard,
            compute_targets=self._targets.compute_due,
            is_void=self.liveness.is_armed_anew,
        )
        self._timers = Timers(
            scheduler,
            self._clock,
            self.stats,
            self.liveness,
            expire=self._submit_internal,
            is_held=self._is_low_on_space,
        )
        self._deadlines = Deadlines(self.liveness, self._timers, self._clock)
        self._news = GroupNews(self._shard_of)
        self._watches = Watches(scheduler, self._news, lambda: self._turns.is_busy)
        self._refresh = TopicRefresh(scheduler, self._submit_internal)
        self._slices = Slices(scheduler.call_soon, self._clock.monotonic_ms)
        self._make_deputies(scheduler)

    def _make_deputies(self, scheduler: Scheduler) -> None:
        """Those that carry out commands and effects with the other parts."""
        self._conversions = Conversions(self._slices, self._turns, self._handle, self._settle)
        self._regexes = Regexes(
            scheduler,
            self._clock,
            self.settings,
            self._authorizer,
            find_group=lambda group_id: self._shard_of(group_id).consumer_groups.get(group_id),
            image=lambda: self._catalogue.image,
            install=self._submit_to_shard,
        )
        self._settings_changes = GroupSettingsChanges(
            self._shards,
            self._clock,
            self.liveness,
            self._timers,
            self._targets,
            self._catalogue,
            submit=self._submit_internal,
        )
        self._make_apply()
        self._reads = GroupReads(
            self._shards, self._slices, self._writer, self._durability, answer=self._answer_read
        )
        self._offsets = OffsetCommands(
            self._store,
            self._shards,
            self._writer,
            self._durability,
            self._clock,
            self._slices,
            image=lambda: self.image,
            deleted=lambda: self._catalogue.deleted_topics,
            check_space=self._check_space,
            answer_error=self._answer_read,
            apply=self._apply.transaction,
            times_out_ms=lambda found: self._background.transactions.deadline_ms(found),
        )
        self._deletion = OffsetDeletion(
            self._store,
            self._shards,
            self._writer,
            self._durability,
            self._slices,
            check_space=self._check_space,
            apply=self._apply.outcome,
            answer_error=self._answer_read,
        )
        self._background = Background(
            self._store,
            scheduler,
            self._clock,
            self.stats,
            self.settings,
            self._shards,
            writer=self._writer,
            catalogue=self._catalogue,
            submit=self._submit_internal,
            begin_grace=self._begin_grace,
            is_held=self._is_low_on_space,
            on_offsets_lost=self._deletion.forget_if_offsetless,
            on_failure=self._on_failure,
        )

    def _make_apply(self) -> None:
        """What applies outcomes, for those that compute them."""
        self._waiting = WaitingMembers(self._slices, self._answer_read)
        effects = Effects(
            self._targets,
            self._regexes,
            self._deadlines,
            self._settings_changes,
            self._refresh_groups,
        )
        self._apply = Apply(
            self._writer,
            self._durability,
            Replayer(self._writer, self._durability, self.liveness, self.stats),
            self._waiting,
            effects,
            self._turns,
            catalogue=self._catalogue,
            answer=self._answer_read,
            show_topics=self._show_topics,
            on_offsets_lost=lambda group_id: self._deletion.forget_if_offsetless(group_id),
            on_failure=self._on_failure,
        )
        self._commits = CommitRoom(self._apply, self._writer, self._clock, self._space)

    def ready(self) -> bool:
        return self._is_ready and not self._is_stopping

    def is_serving(self) -> bool:
        return self._loading is not None and not self._is_stopping

    async def stop(self) -> None:
        """Refuse new commands, flush, answer what was accepted."""
        self._is_stopping = True
        if self._loading is None:
            return
        self._loading.stop()
        self._commits.is_open = False
        self._timers.stop()
        self._waiting.stop()
        self._background.stop()
        self._regexes.stop()
        while self._is_busy():  # noqa: ASYNC110 - once, at the end; no event to keep up
            await asyncio.sleep(0.001)
        # Of members who asked before: what they said was held, or waited for its turn.
        self._waiting.stop()
        self._targets.stop()
        if isinstance(self._scheduler, AsyncioScheduler):
            self._scheduler.close()

    def _is_busy(self) -> bool:
        is_giving = self._slices.is_busy or self._waiting.is_busy
        return self._turns.has_any or is_giving or not self._writer.is_idle

    # ------------------------------------------------------------------------------ what doors use

    @property
    def image(self) -> TopicImage:
        return self._catalogue.durable_image

    @property
    def deleted_topics(self) -> DeletedTopics:
        return self._catalogue.deleted_topics

    @property
    def local_assignments(self) -> LocalAssignments:
        return self._targets.local

    def on_topics_changed(self, callback: TopicsCallback) -> None:
        self._catalogue.on_changed(callback)

    def settings_of(self, group_id: GroupId) -> CoordinatorSettings:
        return self._catalogue.group_settings.get(group_id, self.settings)

    def partition_of(self, group_id: GroupId) -> LogPartition:
        return compute_log_partition(group_id, self.log_partitions)

    async def call(self, command: Command) -> Response:
        return await await_answer(partial(self.submit, command))

    def submit(self, command: Command, reply: Reply) -> None:
        name = type(command).__name__
        counts = self.stats.commands
        counts[name] = counts.get(name, 0) + 1
        if (not self._is_ready or self._is_stopping) and self._refuse(command, reply):
            return
        match command:
            case OffsetCommit():
                self._commit(command, reply)
            case _ if isinstance(command, MemberCommand):
                self._turns.submit(command, reply)
            case _ if isinstance(command, ImmediateCommand):
                self._submit_to_shard(command, reply)
            case OffsetFetch():
                self._offsets.fetch(command, reply)
            case _ if isinstance(command, TransactionCommand):
                self._offsets.change(command, reply)
            case ListTransactions():
                self._offsets.list_transactions(reply)
            case DeleteGroup() | DeleteOffsets():
                self._deletion.submit(command, reply)
            case _ if isinstance(command, ReadCommand):
                self._reads.submit(command, reply)
            case _:
                self._submit_to_catalogue(command, reply)

    def _refuse(self, command: Command, reply: Reply) -> bool:
        """Answer what comes too early or too late; ``False`` where it may be handled."""
        if self._load_in_progress is None or self._is_stopping:
            reply(CoordinatorNotAvailable("The coordinator is not available."))
            return True
        return self._load_in_progress.refuse(command, reply, self.submit)

    def ticket(self, group_id: GroupId, member_id: MemberId) -> Ticket | None:
        if group_id in self._durability.groups:
            return None
        group = self._shard_of(group_id).consumer_groups.get(group_id)
        return make_ticket(group, self.liveness.get(group_id, member_id), self.liveness)

    def commit_ticket(self, command: OffsetCommit) -> CommitTicket | None:
        if not self.ready():
            return None
        return make_commit_ticket(self._commits, self._shard_of(command.group_id), command)

    def touch(self, group_id: GroupId, member_id: MemberId) -> bool:
        entry = self.liveness.get(group_id, member_id)
        return entry is not None and self.liveness.renew_lease(entry, self._clock.monotonic_ms())

    def has_member(self, group_id: GroupId, member_id: MemberId) -> bool:
        return self._shard_of(group_id).has_consumer(group_id, member_id)

    def promise_session(self, group_id: GroupId, member_id: MemberId) -> bool:
        entry = self.liveness.get(group_id, member_id)
        return entry is not None and self.liveness.note_lease(entry)

    def watch(
        self,
        group_id: GroupId,
        member_id: MemberId,
        on_news: Callable[[], None],
        speaker: int = 0,
        on_dropped: Callable[[], None] = ignore_drop,
    ) -> RegisteredWatch:
        watch = self._watches.add(group_id, member_id, on_news, speaker, on_dropped)
        # What is not durable yet is looked at when it is.
        if group_id not in self._durability.groups and self._news.has_news(group_id, member_id):
            watch.cancel()
            on_news()
        return watch

    def groups(self) -> Iterator[ConsumerGroup]:
        """All consumer groups, for metrics and the simulator's checkers."""
        for shard in self._shards:
            yield from shard.consumer_groups.values()

    @property
    def shards(self) -> list[Shard]:
        """The shards, for metrics and the simulator's checkers."""
        return self._shards

    # ------------------------------------------------------------------------ commands of a group

    def _shard_of(self, group_id: GroupId) -> Shard:
        return self._shards[compute_log_partition(group_id, self.log_partitions)]

    def _submit_internal(self, command: Command, reply: Reply | None = None) -> None:
        if not self._is_stopping:
            self.submit(command, reply or ignore_answer)

    def _submit_to_shard(
        self, command: ShardCommand, reply: Reply, shard: Shard | None = None
    ) -> None:
        shard = self._shard_of(command.group_id) if shard is None else shard
        self._settle(shard, command, reply, partial(self._handle, shard, command))

    def _handle(self, shard: Shard, command: ShardCommand) -> Outcome:
        if isinstance(command, ConsumerGroupHeartbeat) and not command.by_server:
            entry = self.liveness.get(command.group_id, command.member_id)
            command = note_missed_answer(command, entry)
        return handle(shard, command, self._clock.now())

    def _settle(
        self, shard: Shard, command: ShardCommand, reply: Reply, compute: Callable[[], Outcome]
    ) -> None:
        """Carry out what the command comes to, or refuse it."""
        group_id = command.group_id
        try:
            outcome = compute()
            self._check_space(outcome)
        except GroupError as error:
            self.stats.refused_joins.note(command, error, self._clock.monotonic_ms())
            self._answer_read((group_id,), reply, error)
            return
        except Exception as bug:
            log.exception("handling_failed", group_id=group_id, command=type(command).__name__)
            self._answer_read((group_id,), reply, UnknownServerError(repr(bug)))
            return
        if outcome.slices is not None:
            self._conversions.begin(shard, command, outcome, reply)
            return
        # Not what was refused: a stranger's word must not end what waits for the member.
        self._watches.hear(command)
        self._apply.outcome(shard, command, outcome, reply)
        if not outcome.is_prepared:  # What was prepared is much, and is for another turn.
            self._writer.write_if_full()

    def _commit(self, command: OffsetCommit, reply: Reply) -> None:
        """``_submit_to_shard`` for what comes most: hardly an effect, no second half, one group."""
        group_id = command.group_id
        shard = self._shards[compute_log_partition(group_id, self.log_partitions)]
        now = self._clock.now()
        try:
            outcome = handle(shard, command, now)
            if self._space.is_low(now.monotonic_ms):
                self._check_space(outcome)
        except GroupError as error:
            self._answer_read((group_id,), reply, error)
            return
        self._apply.commit(shard, group_id, outcome, reply)

    # ------------------------------------------------------------------------------------ answers

    def _answer_read(self, group_ids: tuple[GroupId, ...], reply: Reply, answer: Answer) -> None:
        """Answer when what these groups' answer shows is durable: at once, mostly."""
        if isinstance(answer, GroupError):
            self.stats.count_error(answer.code.name)
        generation = self._durability.generation_of_groups(group_ids)
        self._writer.answer_when_durable(generation, reply, answer)

    def _show_durable(self, generation: int) -> None:
        """Answers name topics by the image that is durable: it is exchanged before they leave."""
        if self._catalogue.settle(generation):
            self._show_topics()

    def _on_durable(self, generation: int) -> None:
        changed = self._durability.settle(generation)
        if changed:
            self._watches.look_at(changed)
            self._targets.look_at(changed)

    # ------------------------------------------------------------------------------------- topics

    def _submit_to_catalogue(self, command: TopicCommand | ConfigCommand, reply: Reply) -> None:
        try:
            outcome = self._catalogue.compute(command, self._check_space)
        except GroupError as error:
            self._answer_read((CATALOGUE,), reply, error)
            return
        self._apply.catalogue(outcome, reply)
        self._background.delete_offsets_of_topics()

    def _begin_grace(self) -> None:
        self._apply.catalogue(self._catalogue.compute_grace(), ignore_answer)

    def _show_topics(self) -> None:
        for shard in self._shards:
            shard.image = self._catalogue.image

    def _refresh_groups(self, name: TopicName) -> None:
        self._regexes.topic_changed(name)
        self._refresh.refresh(
            group_id
            for shard in self._shards
            for group_id in sorted(shard.groups_by_topic.get(name, ()))
        )

    def _check_space(self, outcome: Outcome) -> None:
        if outcome.writes:
            self._space.check(self._clock.monotonic_ms(), self.stats)

    def _is_low_on_space(self) -> bool:
        return self._space.is_low(self._clock.monotonic_ms())
