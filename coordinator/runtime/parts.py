"""Wires the parts of a runtime together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import structlog

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.groups.topic_records import Catalogue
from coordinator.core.state.consumer.consumer_group import ConsumerGroup
from coordinator.core.state.shard import Shard
from coordinator.runtime.api import Reply, ignore_answer
from coordinator.runtime.audit import Audit
from coordinator.runtime.authorizer import Authorizer
from coordinator.runtime.background import Background
from coordinator.runtime.clock import Scheduler, SteadyClock
from coordinator.runtime.commands.changed_configs import GroupSettingsChanges
from coordinator.runtime.commands.changes import Changes
from coordinator.runtime.commands.command_turns import Turns
from coordinator.runtime.commands.commit_ticket import CommitContext
from coordinator.runtime.commands.effects import Effects
from coordinator.runtime.commands.group_reads import GroupReads
from coordinator.runtime.commands.replayer import Replayer
from coordinator.runtime.commands.stopped_shards import StoppedShards
from coordinator.runtime.commands.topic_command_runner import TopicCommands
from coordinator.runtime.commands.waiting_members import WaitingMembers
from coordinator.runtime.commands.what_ifs import WhatIfs
from coordinator.runtime.commit.checkpoints import Checkpoints
from coordinator.runtime.commit.durability import Durability
from coordinator.runtime.commit.shard_context import ShardContext
from coordinator.runtime.ledger.ledger_reads import find_last_ms
from coordinator.runtime.ledger.offset_changes import LedgerEntries, OffsetChangeLedger
from coordinator.runtime.ledger.rebalance_ledger import RebalanceLedger
from coordinator.runtime.loop.slices import Slices
from coordinator.runtime.loop.stats import Stats
from coordinator.runtime.loop.write_space import Space
from coordinator.runtime.members.deadlines import Deadlines
from coordinator.runtime.members.group_notices import GroupNotices
from coordinator.runtime.members.member_watches import Watches
from coordinator.runtime.members.pending_changes import PendingChanges
from coordinator.runtime.members.timers import Timers
from coordinator.runtime.offsets.offset_commands import OffsetCommands
from coordinator.runtime.offsets.offset_deletion import OffsetDeletion
from coordinator.runtime.offsets.offset_resets import OffsetResets
from coordinator.runtime.rebalance_causes import RebalanceCauses
from coordinator.runtime.targets.target_schedule import Targets
from coordinator.runtime.topics.regex_schedule import Regexes
from coordinator.runtime.topics.topic_images import TopicCatalogueRuntime
from coordinator.runtime.topics.topic_refresh import TopicRefresh
from coordinator.runtime.traced_parts import PLAIN, make_traced_kinds
from coordinator.runtime.trips.trips import Trips
from model.commands.command import Command
from model.commands.resets import FinishReset
from model.configs.coordinator_settings import CoordinatorSettings
from model.ids import GroupId, LogPartition, TopicName
from muster.assignors.registry import Assignors
from security.acl_index import AclIndex
from security.quotas.quota_index import QuotaIndex
from security.scram_credentials import ScramCredentials
from storage.log_store import LogStore

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the runtime gets from its caller, or creates before it starts."""

    # More than 15 attributes: one for each thing that the parts share.

    store: LogStore
    settings: CoordinatorSettings
    clock: SteadyClock
    space: Space
    authorizer: Authorizer
    acls: AclIndex
    quotas: QuotaIndex
    scram_credentials: ScramCredentials
    new_fake_salt_secret: bytes = field(repr=False)
    audit: Audit
    assignors: Assignors
    stats: Stats
    liveness: Liveness
    shards: list[Shard]
    on_failure: Callable[[BaseException], None]
    keep_evidence: Callable[[LogPartition, str], None]
    trips: Trips | None = None
    """``None`` unless requests are traced."""


class Parts:
    """The parts of a running coordinator, created from the writer up.

    ``submit`` takes the coordinator's own commands. All wiring between parts is here and nowhere
    else.
    """

    # More than 15 attributes: one attribute is one part.

    def __init__(
        self, around: Surroundings, scheduler: Scheduler, submit: Callable[[Command, Reply], None]
    ) -> None:
        self._around = around
        self._scheduler = scheduler
        self._submit = submit
        self._finishing: set[GroupId] = set()
        self._kinds = PLAIN if around.trips is None else make_traced_kinds(around.trips)
        self._make_writer()
        self._make_targets()
        self._make_members()
        self._make_apply()
        self._make_commands()
        self.background = self._make_background()

    def _make_writer(self) -> None:
        around = self._around
        self.durability = Durability()
        self.ledger = RebalanceLedger(
            around.clock,
            around.liveness,
            around.stats,
            shard_of=lambda group_id: self.context.shard_of(group_id),
            find_last_ms=partial(find_last_ms, around.store),
        )
        entries = LedgerEntries(self.ledger, OffsetChangeLedger(around.stats))
        self.writer = self._kinds.writer(
            around.store,
            self._scheduler,
            around.clock,
            around.stats,
            around.settings.flush_records_max,
            before_write=lambda: self.turns.close_batch(),
            causes=entries.compute,
            causes_written=entries.note_written,
            show_durable=self._show_durable,
            on_durable=self._note_durable,
            on_failure=around.on_failure,
        )
        self.context = ShardContext(
            around.store,
            around.shards,
            self.writer,
            self.durability,
            around.clock,
            around.stats,
            around.space,
            Slices(
                self._scheduler.call_soon,
                self._scheduler.call_later_ms,
                around.clock.monotonic_ms,
            ),
        )
        self.catalogue = TopicCatalogueRuntime(
            around.store,
            self.writer,
            self.durability,
            around.clock,
            Catalogue(
                around.settings,
                acls=around.acls,
                quotas=around.quotas,
                scram_credentials=around.scram_credentials,
                new_fake_salt_secret=around.new_fake_salt_secret,
            ),
        )

    def _make_targets(self) -> None:
        around = self._around
        self.targets = Targets(
            self._scheduler,
            around.clock,
            around.stats,
            around.settings,
            around.assignors,
            shard_of=self.context.shard_of,
            submit=lambda command: self.groups.submit(command, ignore_answer),
            request_flush=self.writer.request_flush,
            slices=self.context.slices.beside(),
        )
        self.turns = Turns(
            self._scheduler,
            self.writer,
            handle=lambda command, reply, shard: self.groups.submit(command, reply, shard),
            compute_targets=self.targets.compute_due,
            is_void=around.liveness.is_armed_anew,
            waits=around.stats.queue_seconds["commands"],
        )
        self.refresh = TopicRefresh(self.context.slices.beside(), self._submit)
        self.regexes = Regexes(
            self._scheduler,
            around.clock,
            around.settings,
            around.authorizer,
            find_group=self._find_consumer_group,
            image=lambda: self.catalogue.image,
            install=lambda command, reply: self.groups.submit(command, reply),
        )

    def _make_members(self) -> None:
        around = self._around
        self.timers = Timers(
            self._scheduler,
            around.clock,
            around.stats,
            around.liveness,
            expire=self._submit,
            is_held=self.context.is_low_on_space,
            is_stopped=lambda group_id: self.stopped.is_stopped(group_id),
        )
        changes = PendingChanges(self.context.shard_of)
        self.watches = Watches(
            self.context.slices.beside(),
            changes,
            self.durability.groups,
            is_busy=lambda: self.turns.is_busy,
        )
        self.notices = GroupNotices()

    def _make_apply(self) -> None:
        around = self._around
        self.waiting = WaitingMembers(self.context.slices, self.context.answer)
        changes = GroupSettingsChanges(
            around.shards,
            around.clock,
            around.liveness,
            self.timers,
            self.targets,
            self.catalogue,
            submit=lambda command: self._submit(command, ignore_answer),
        )
        self.stopped = StoppedShards(
            around.shards, around.liveness, around.stats, self.waiting, self._keep_evidence
        )
        self.apply = self._kinds.apply(
            self.context,
            Replayer(self.writer, self.durability, around.liveness, around.stats),
            self.waiting,
            Effects(
                self.targets,
                self.regexes,
                Deadlines(around.liveness, self.timers, around.clock),
                changes,
                self._refresh_groups,
                self.finish_reset,
                RebalanceCauses(
                    around.stats.rebalance_causes,
                    self._scheduler.call_soon,
                    around.clock.monotonic_ms,
                ),
                self.ledger,
            ),
            self.turns,
            stopped=self.stopped,
            catalogue=self.catalogue,
            on_live_change=self.notices.note,
            on_offsets_lost=lambda group_id: self.deletion.forget_if_offsetless(group_id),
            on_failure=around.on_failure,
        )

    def _make_commands(self) -> None:
        around = self._around
        self.groups = self._kinds.groups(
            self.context, self.apply, self.turns, self.watches, around.liveness
        )
        self.commits = CommitContext(self.apply, self.writer, around.clock, around.space)
        self.reads = GroupReads(self.context, around.liveness, self.ledger)
        self.what_ifs = WhatIfs(self.context, self._scheduler, around.clock, around.assignors)
        self.offsets = OffsetCommands(
            self.context,
            image=lambda: self.catalogue.durable_image,
            deleted=lambda: self.catalogue.deleted_topics,
            apply=self.apply.transaction,
            times_out_ms=lambda found: self.background.transactions.deadline_ms(found),
        )
        # Looked up at each call: the simulation looks at outcomes there.
        self.deletion = OffsetDeletion(
            self.context, apply=lambda *given: self.apply.outcome(*given)
        )
        self.resets = OffsetResets(
            self.context,
            apply=lambda *given: self.apply.outcome(*given),
            on_offsets_lost=self.deletion.forget_if_offsetless,
        )
        self.topics = TopicCommands(
            self.context,
            self.catalogue,
            self.apply,
            delete_offsets=lambda: self.background.delete_offsets_of_topics(),
        )
        self.changes = Changes(self.context, self.catalogue, around.audit)

    def _make_background(self) -> Background:
        around = self._around
        checkpoints = Checkpoints(
            around.store,
            self._scheduler,
            self.context.slices.beside(),
            around.stats,
            around.settings,
            is_held=self.context.is_low_on_space,
            on_failure=around.on_failure,
        )
        return Background(
            around.store,
            self._scheduler,
            around.clock,
            around.stats,
            around.settings,
            around.shards,
            slices=self.context.slices.beside(),
            writer=self.writer,
            checkpoints=checkpoints,
            catalogue=self.catalogue,
            submit=self._submit,
            begin_grace=self.topics.begin_grace,
            is_held=self.context.is_low_on_space,
            on_offsets_lost=self.deletion.forget_if_offsetless,
            on_failure=around.on_failure,
        )

    # ------------------------------------------------------------------------- starting, stopping

    def begin(self) -> None:
        """Start the work that needs every group loaded."""
        self.background.begin()
        self.targets.begin(self.catalogue.group_settings)

    def stop(self) -> None:
        """Start nothing new; accepted commands go on."""
        self.commits.is_open = False
        self.timers.stop()
        self.waiting.stop()
        self.background.stop()
        self.regexes.stop()

    def finish(self) -> None:
        """Answer what waiting members asked, now that every accepted command is done."""
        # Their requests were held, or were queued behind others.
        self.waiting.stop()
        self.targets.stop()

    @property
    def is_busy(self) -> bool:
        """Whether any accepted command is still unanswered."""
        is_giving = self.context.slices.is_busy or self.waiting.is_busy
        return self.turns.has_any or is_giving or not self.writer.is_idle

    def _keep_evidence(self, partition: LogPartition, evidence: str) -> None:
        """On the thread for the disk."""
        keep = partial(self._around.keep_evidence, partition, evidence)
        self._scheduler.run_blocking(keep, _note_kept)

    # --------------------------------------------------------------------- what becomes durable

    def _show_durable(self, generation: int) -> None:
        """Publish the durable topic image before responses that name its topics leave."""
        if self.catalogue.settle(generation):
            self.catalogue.show_to(self._around.shards)

    def _note_durable(self, generation: int) -> None:
        changed = self.durability.settle(generation)
        if changed:
            self.watches.look_at(changed)
            self.targets.look_at(changed)
            self.notices.look_at(changed)

    # ------------------------------------------------------------------------------------- groups

    def _find_consumer_group(self, group_id: GroupId) -> ConsumerGroup | None:
        return self.context.shard_of(group_id).consumer_groups.get(group_id)

    def _refresh_groups(self, name: TopicName) -> None:
        """Refresh the groups that subscribe to a changed topic."""
        self.regexes.topic_changed(name)
        found = (shard.groups_by_topic.get(name, ()) for shard in self._around.shards)
        self.refresh.refresh(chain.from_iterable(map(sorted, found)), name)

    def finish_reset(self, group_id: GroupId) -> None:
        """Look whether the offsets of a reset can be set, after what is being applied."""
        # Once for many members that give partitions up: each look is at all of the reset.
        if group_id not in self._finishing:
            self._finishing.add(group_id)
            self._scheduler.call_soon(partial(self._finish_reset, group_id))

    def _finish_reset(self, group_id: GroupId) -> None:
        self._finishing.discard(group_id)
        # An undo may remove the last offset.
        self._submit(FinishReset(group_id), lambda _: self.deletion.forget_if_offsetless(group_id))


def _note_kept(result: BaseException | None) -> None:
    if result is not None:
        log.error("evidence_not_kept", cause=repr(result))
