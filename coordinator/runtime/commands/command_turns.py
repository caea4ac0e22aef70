"""Limits how many heartbeats one event-loop iteration, and one batch, handles.

A heartbeat costs more the larger its group, and all members of a group may send one at once. The
heartbeats beyond the limit queue in order for a later iteration. The continuations of one slice are
written before the next slice starts, so that no batch takes long to close either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import TypeAlias

import structlog

from coordinator.core.state.shard import Shard
from coordinator.dispatch.handle import ShardCommand
from coordinator.runtime.api import Reply
from coordinator.runtime.clock import Scheduler
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.loop.slices import STALL_RETRY_MS
from coordinator.runtime.loop.stats import Histogram
from model.commands.classic import ExpireClassicDeadline
from model.commands.consumer import ExpireMember, ReconcileMember
from model.errors import UnknownServerError
from model.ids import GroupId
from model.responses.response import Done

log = structlog.get_logger()

SLICE = 64
"""Heartbeats, or continuations, per iteration; each takes up to 0.2 ms."""


_Queued: TypeAlias = tuple[ShardCommand, Reply, float]
"""With the time since when it waits."""


class Turns:
    """Queues members' commands until they are handled, and the continuations of heartbeats.

    ``handle`` handles one command, in its group's shard unless given one. ``compute_targets`` runs
    before continuations. ``is_void`` says that an earlier command has postponed an expiry.
    ``waits`` gets the time (s) for which each command was queued.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        writer: Writer,
        *,
        handle: Callable[[ShardCommand, Reply, Shard | None], None],
        compute_targets: Callable[[], None],
        is_void: Callable[[ExpireMember | ExpireClassicDeadline], bool],
        waits: Histogram,
    ) -> None:
        self._scheduler = scheduler
        self._writer = writer
        self._handle = handle
        self._compute_targets = compute_targets
        self._is_void = is_void
        self._waits = waits
        self._waiting: deque[_Queued] = deque()
        self._held: dict[GroupId, list[_Queued]] = {}
        self._follow_ups: list[tuple[Shard, ReconcileMember, Reply]] = []
        self._handled = 0
        self._is_turn_due = False

    @property
    def is_busy(self) -> bool:
        """Whether more is queued than one iteration can handle."""
        return bool(self._waiting)

    @property
    def has_any(self) -> bool:
        """Whether any command is queued or held."""
        return bool(self._waiting or self._held)

    def hold(self, group_id: GroupId) -> None:
        """Hold the commands of this group's members until ``let_go``."""
        self._held.setdefault(group_id, [])

    def let_go(self, group_id: GroupId) -> None:
        """Handle the held commands in order, ahead of the queue."""
        self._waiting.extendleft(reversed(self._held.pop(group_id, [])))
        self._request_turn()

    def submit(self, command: ShardCommand, reply: Reply) -> None:
        """Handle a member's command now, or queue it behind those waiting."""
        if self._waiting or not self._has_room():
            self._waiting.append((command, reply, perf_counter()))
        else:
            self._take(command, reply, None)
        self._request_turn()

    def _take(self, command: ShardCommand, reply: Reply, since_s: float | None) -> None:
        if command.group_id in self._held:
            now_s = perf_counter() if since_s is None else since_s
            self._held[command.group_id].append((command, reply, now_s))
            return
        if since_s is None:
            self._waits.counts[0] += 1
        else:
            self._waits.add(perf_counter() - since_s)
        self._handled += 1
        if isinstance(command, ExpireMember | ExpireClassicDeadline) and self._is_void(command):
            reply(Done())
        else:
            self._handle_alone(command, reply, None)

    def follow_up(self, shard: Shard, command: ReconcileMember, reply: Reply) -> None:
        """Queue the continuation of a heartbeat for the end of the batch."""
        self._follow_ups.append((shard, command, reply))
        self._writer.request_flush()

    def close_batch(self) -> None:
        """Compute targets for what was gathered, then run the continuations of heartbeats."""
        while True:
            self._compute_targets()
            if not self._follow_ups:
                return
            follow_ups, self._follow_ups = self._follow_ups, []
            for shard, command, reply in follow_ups:
                self._handle_alone(command, reply, shard)

    def _handle_alone(self, command: ShardCommand, reply: Reply, shard: Shard | None) -> None:
        """Handle one command; only its own client sees a failure, and the others go on."""
        try:
            self._handle(command, reply, shard)
        except Exception as bug:
            log.exception("handling_failed", group_id=command.group_id)
            reply(UnknownServerError(repr(bug)))

    def _has_room(self) -> bool:
        return self._handled < SLICE and len(self._follow_ups) < SLICE

    def _request_turn(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            self._scheduler.call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        # Not done by ``Slices``: this queue preserves the order of commands, those arriving
        # meanwhile too.
        self._is_turn_due = False
        self._handled = 0
        if not self._waiting:
            return
        if len(self._follow_ups) >= SLICE:
            if not self._writer.write_early():
                self._is_turn_due = True
                self._scheduler.call_later_ms(STALL_RETRY_MS, self._begin_turn)
                return
        else:
            while self._waiting and self._has_room():
                self._take(*self._waiting.popleft())
        self._request_turn()
