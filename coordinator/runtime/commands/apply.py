"""Applies the outcomes of commands: to memory at once, to the log with the next write.

Every outcome goes through here, fast paths included. A command can be refused only before its first
record is replayed. A failure after that is a bug that leaves memory different from the log: the
outcome is logged and the process ends (``HalfApplied``). A restart reloads the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NoReturn

from coordinator.core.replay.group_records import replay
from coordinator.core.replay.offset_records import (
    replay_offset_group,
    replay_transaction,
)
from coordinator.core.replay.shard_side_records import replay_shard_side
from coordinator.core.state.outcome import ArmClassicDeadline, Outcome, RefreshGroups
from coordinator.core.state.shard import Shard
from coordinator.dispatch.handle import ShardCommand
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.commands.command_turns import Turns
from coordinator.runtime.commands.effects import Effects
from coordinator.runtime.commands.replayer import Replayer
from coordinator.runtime.commands.stopped_shards import STOPPED, StoppedShards
from coordinator.runtime.commands.waiting_members import WaitingMembers
from coordinator.runtime.commit.entries import NOTHING_WAITED, CommitEntry, Entry, make_entry
from coordinator.runtime.commit.process_end import HalfApplied
from coordinator.runtime.commit.shard_context import ShardContext
from coordinator.runtime.ledger.offset_changes import CHANGE_OFFSETS, compute_offset_change
from coordinator.runtime.topics.topic_images import (
    CATALOGUE,
    NO_PARTITION,
    TopicCatalogueRuntime,
)
from model.commands.command import DeletionCommand
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.resets import ResetOffsets
from model.commands.topics import ReplaceTopics
from model.errors import LogPartitionStopped
from model.ids import GroupId
from model.log.transaction_records import TransactionalOffsets, TransactionMarker
from model.responses.response import Done


class Apply:
    """Applies outcomes.

    ``on_failure`` ends the process. ``on_offsets_lost`` gets the groups that lost offsets by an
    abort, ``on_live_change`` the classic groups that changed in what is not durable.
    """

    def __init__(
        self,
        context: ShardContext,
        replayer: Replayer,
        waiting: WaitingMembers,
        effects: Effects,
        turns: Turns,
        *,
        stopped: StoppedShards,
        catalogue: TopicCatalogueRuntime,
        on_live_change: Callable[[GroupId], None],
        on_offsets_lost: Callable[[GroupId], None],
        on_failure: Callable[[BaseException], None],
    ) -> None:
        self._context = context
        self._writer = context.writer
        self._durability = context.durability
        self._replayer = replayer
        self._waiting = waiting
        self._effects = effects
        self._ledger, self._rebalancing = effects.ledger, effects.ledger.going_on
        self._turns = turns
        self._stopped = stopped
        self._catalogue = catalogue
        self._on_live_change = on_live_change
        self._on_offsets_lost = on_offsets_lost
        self._on_failure = on_failure

    def outcome(
        self,
        shard: Shard,
        command: ShardCommand | DeletionCommand | ResetOffsets,
        outcome: Outcome,
        reply: Reply,
    ) -> None:
        """Apply the outcome of a command of one group."""
        if (outcome.records or shard.soft.is_stopped) and not self._stopped.check(
            shard, command.group_id, command, outcome
        ):
            self._context.answer((command.group_id,), reply, LogPartitionStopped(STOPPED))
            return
        try:
            self._apply_outcome(shard, command, outcome, reply)
        except Exception as bug:  # noqa: BLE001 - ends the process
            self._end(bug, outcome)

    def commit(self, shard: Shard, group_id: GroupId, outcome: Outcome, reply: Reply) -> None:
        """Fast path of ``outcome`` for OffsetCommit: one group, no continuation, few effects."""
        try:
            self._apply_commit(shard, group_id, outcome, reply)
        except Exception as bug:  # noqa: BLE001 - ends the process
            self._end(bug, outcome)

    def repeated_commit(
        self,
        shard: Shard,
        group_id: GroupId,
        session: ArmClassicDeadline | None,
        entry: CommitEntry,
    ) -> None:
        """Apply a commit made with a ticket; its records are built when they are written."""
        try:
            if session is not None:
                self._effects.deadlines.renew(session)
            replay_offset_group(shard, group_id)
            self._durability.note_offsets(group_id, self._writer.generation)
            self._writer.append_commit(entry)
        except Exception as bug:  # noqa: BLE001 - ends the process
            self._end(bug, entry)

    def renew(self, session: ArmClassicDeadline) -> None:
        """Renew the session of a member whose commit, made with a ticket, is kept elsewhere."""
        try:
            self._effects.deadlines.renew(session)
        except Exception as bug:  # noqa: BLE001 - ends the process
            self._end(bug, session)

    def transaction(
        self, shard: Shard, outcome: Outcome, groups: tuple[GroupId, ...], reply: Reply
    ) -> None:
        """Apply the outcome of a producer's command; its response shows ``groups``."""
        try:
            self._apply_transaction(shard, outcome, groups, reply)
        except Exception as bug:  # noqa: BLE001 - ends the process
            self._end(bug, outcome)

    def catalogue(self, outcome: Outcome, reply: Reply) -> None:
        """Apply the outcome of a command about topics or group configs."""
        try:
            self._apply_to_catalogue(outcome, reply)
        except Exception as bug:  # noqa: BLE001 - ends the process
            self._end(bug, outcome)

    def topics(self, command: ReplaceTopics, reply: Reply) -> None:
        """Take the topics of a catalogue elsewhere; the groups that use them are refreshed."""
        try:
            names, gone = self._catalogue.replace_topics(command.changed, command.gone)
            if names:
                self._catalogue.show_to(self._context.shards)
                self._effects.carry_out_all(map(RefreshGroups, names))
                self._catalogue.tell(gone)
            self._context.answer((CATALOGUE,), reply, Done())
        except Exception as bug:  # noqa: BLE001 - ends the process
            self._end(bug, command)

    def _end(self, bug: Exception, applied: object) -> NoReturn:
        if isinstance(bug, HalfApplied):  # From a continuation or a released response.
            raise bug
        failure = HalfApplied(applied, bug)
        self._on_failure(failure)
        raise failure

    def _apply_outcome(
        self,
        shard: Shard,
        command: ShardCommand | DeletionCommand | ResetOffsets,
        outcome: Outcome,
        reply: Reply,
    ) -> None:
        group_id = command.group_id
        waited, is_written = NOTHING_WAITED, bool(outcome.records or outcome.side)
        if outcome.effects:
            self._ledger.before(shard, command, outcome)
        if is_written:
            waited = self._replayer.replay(shard, group_id, outcome)
        if outcome.classic is not None:
            shard.soft.live_classic_groups[group_id] = outcome.classic
            self._on_live_change(group_id)
        elif isinstance(command, ConsumerGroupHeartbeat) and not command.by_server:
            self._effects.deadlines.heard(group_id, command.member_id)
            self._effects.regexes.heard(shard, command)
        self._effects.carry_out_all(outcome.effects)
        if group_id in self._rebalancing:
            self._ledger.observe(shard, group_id, command, outcome)
        is_classic, has_more = outcome.classic is not None, outcome.then is not None
        if not (is_classic or has_more):
            assert outcome.response is not None, f"{command} has no response"
        if is_written:
            answered = None if is_classic or has_more else reply
            changed = None
            if type(command) in CHANGE_OFFSETS:
                changed = compute_offset_change(shard, command, outcome)
            self._writer.append(make_entry(shard.partition, outcome, answered, waited, changed))
        self._waiting.apply(group_id, outcome, reply)
        if outcome.then is not None:
            self._turns.follow_up(shard, outcome.then, reply)
        elif outcome.response is not None and (is_classic or not is_written):
            self._context.answer((group_id,), reply, outcome.response)

    def _apply_to_catalogue(self, outcome: Outcome, reply: Reply) -> None:
        assert outcome.response is not None
        if outcome.side:
            self._catalogue.replay(outcome)
            entry = Entry(NO_PARTITION, (), outcome.side, reply, outcome.response)
            self._writer.append(entry)
            self._catalogue.show_to(self._context.shards)
        else:
            self._context.answer((CATALOGUE,), reply, outcome.response)
        self._effects.carry_out_all(outcome.effects)

    def _apply_commit(
        self, shard: Shard, group_id: GroupId, outcome: Outcome, reply: Reply
    ) -> None:
        records, commits, response = outcome.records, outcome.commits, outcome.response
        assert response is not None
        assert not outcome.side, "a commit writes offsets alone"
        self._effects.carry_out_all(outcome.effects)
        # Offsets change no state but the set of groups that have any, and all of these are of one
        # group.
        if commits:
            replay_offset_group(shard, commits[0].group)
        elif records:
            replay(shard, records[0])
        else:
            self._context.answer((group_id,), reply, response)
            return
        self._durability.note_offsets(group_id, self._writer.generation)
        self._writer.append_and_write(Entry(shard.partition, records, (), reply, response, commits))

    def _apply_transaction(
        self, shard: Shard, outcome: Outcome, groups: tuple[GroupId, ...], reply: Reply
    ) -> None:
        record, response = outcome.transaction, outcome.response
        assert response is not None
        for state in outcome.side:
            replay_shard_side(shard, state)
        if record is None:
            if outcome.side:
                self._writer.append(Entry(shard.partition, (), outcome.side, reply, response))
            else:
                self._context.answer(groups, reply, response)
            return
        changed, waiting = set(groups), 0
        if not isinstance(record, TransactionalOffsets):
            transaction = shard.open_transactions.get(record.producer_id)
            epochs = {} if transaction is None else transaction.epochs
            changed, waiting = {key.group for key in epochs}, len(epochs)
        replay_transaction(shard, record)
        for group_id in sorted(changed):
            self._durability.note_offsets(group_id, self._writer.generation)
        if isinstance(record, TransactionMarker) and not record.committed:
            reply = partial(self._answer_and_forget, reply, sorted(changed))
        entry = Entry(
            shard.partition,
            (),
            outcome.side,
            reply,
            response,
            transaction=record,
            waiting=waiting,
        )
        self._writer.append_and_write(entry)

    def _answer_and_forget(self, reply: Reply, groups: Iterable[GroupId], answer: Answer) -> None:
        """Answer an abort; first check which groups have lost their last offset.

        The store could not tell before the abort was written.
        """
        try:
            for group_id in groups:
                self._on_offsets_lost(group_id)
        finally:
            reply(answer)
