"""Commands of one group: handled by its shard, then applied or refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import structlog

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.state.outcome import Outcome
from coordinator.core.state.shard import Shard
from coordinator.dispatch.handle import ShardCommand, handle
from coordinator.runtime.api import Reply
from coordinator.runtime.commands.apply import Apply
from coordinator.runtime.commands.command_turns import Turns
from coordinator.runtime.commands.sliced_conversions import Conversions
from coordinator.runtime.commit.shard_context import ShardContext
from coordinator.runtime.members.member_watches import Watches
from coordinator.runtime.members.missed_answers import note_missed_answer
from model.commands.classic import ClassicHeartbeat, JoinGroup, SyncGroup
from model.commands.consumer import ConsumerGroupHeartbeat, LeaveGroup
from model.commands.offsets import OffsetCommit
from model.errors import GroupError, UnknownServerError

log = structlog.get_logger()

_CLASSIC: Final = (JoinGroup, SyncGroup, ClassicHeartbeat, LeaveGroup)
"""What members send in the classic protocol; on a consumer group it is translated."""


class GroupCommands:
    """Carries out commands that need only their group's shard."""

    def __init__(
        self,
        context: ShardContext,
        apply: Apply,
        turns: Turns,
        watches: Watches,
        liveness: Liveness,
    ) -> None:
        self._context = context
        self._apply = apply
        self._watches = watches
        self._liveness = liveness
        self._conversions = Conversions(
            context.slices,
            turns,
            self._handle,
            lambda shard, command, reply, compute: self.settle(shard, command, reply, compute),
        )

    def submit(self, command: ShardCommand, reply: Reply, shard: Shard | None = None) -> None:
        """Handle, replay and gather a command; the response is sent when it is durable."""
        shard = self._context.shard_of(command.group_id) if shard is None else shard
        self.settle(shard, command, reply, partial(self._handle, shard, command))

    def _handle(self, shard: Shard, command: ShardCommand) -> Outcome:
        if isinstance(command, ConsumerGroupHeartbeat) and not command.by_server:
            entry = self._liveness.get(command.group_id, command.member_id)
            command = note_missed_answer(command, entry)
        elif isinstance(command, _CLASSIC) and command.group_id in shard.consumer_groups:
            counts, name = self._context.stats.translated_requests, type(command).__name__
            counts[name] = counts.get(name, 0) + 1
        return handle(shard, command, self._context.clock.now())

    def settle(
        self, shard: Shard, command: ShardCommand, reply: Reply, compute: Callable[[], Outcome]
    ) -> None:
        """Apply the outcome of the command, or refuse it."""
        context, group_id = self._context, command.group_id
        try:
            outcome = compute()
            context.check_space(outcome)
        except GroupError as error:
            context.stats.refused_joins.note(command, error, context.clock.monotonic_ms())
            context.answer((group_id,), reply, error)
            return
        except Exception as bug:
            log.exception("handling_failed", group_id=group_id, command=type(command).__name__)
            context.answer((group_id,), reply, UnknownServerError(repr(bug)))
            return
        if outcome.slices is not None:
            self._conversions.begin(shard, command, outcome, reply)
            return
        # Only for accepted commands: a refused one, which anyone could send, must not drop the
        # watch.
        self._watches.hear(command)
        self._apply.outcome(shard, command, outcome, reply)
        if not outcome.is_prepared:  # A prepared outcome is large: write it later.
            context.writer.write_if_full()

    def commit(self, command: OffsetCommit, reply: Reply) -> None:
        """Fast path of ``submit`` for OffsetCommit: one group, no continuation, few effects."""
        context, group_id = self._context, command.group_id
        shard = context.shard_of(group_id)
        now = context.clock.now()
        try:
            outcome = handle(shard, command, now)
            if context.space.is_low(now.monotonic_ms):
                context.check_space(outcome)
        except GroupError as error:
            context.answer((group_id,), reply, error)
            return
        except Exception as bug:
            log.exception("handling_failed", group_id=group_id, command=type(command).__name__)
            context.answer((group_id,), reply, UnknownServerError(repr(bug)))
            return
        self._apply.commit(shard, group_id, outcome, reply)
