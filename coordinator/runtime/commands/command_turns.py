"""What of heartbeats is done in one turn of the loop, and in one batch: a slice of what has come.

A heartbeat costs the more the larger its group, and all members of a group may speak at once. What
comes beyond a slice waits, in the order in which it came, for a later turn. The second halves of a
slice are written before the next slice begins, so that no batch takes long to close either.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import structlog

from coordinator.core.state.shard import Shard
from coordinator.dispatch.handle import ShardCommand
from coordinator.runtime.api import Reply
from coordinator.runtime.clock import Scheduler
from coordinator.runtime.commit.writer import Writer
from coordinator.runtime.loop.slices import STALL_RETRY_MS
from model.commands import ExpireClassicDeadline, ExpireMember, ReconcileMember
from model.errors import UnknownServerError
from model.ids import GroupId
from model.responses import Done

log = structlog.get_logger()

SLICE = 64
"""So many heartbeats, or second halves of them, in one turn; each takes up to 0.2 ms."""


class Turns:
    """Members' commands until they are handled, and the second halves of heartbeats.

    ``handle`` handles one, of the shard of its group unless one is given. ``compute_targets``
    comes before second halves. ``is_void`` says of an expiry that what came before it has put it
    off.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        writer: Writer,
        *,
        handle: Callable[[ShardCommand, Reply, Shard | None], None],
        compute_targets: Callable[[], None],
        is_void: Callable[[ExpireMember | ExpireClassicDeadline], bool],
    ) -> None:
        self._scheduler = scheduler
        self._writer = writer
        self._handle = handle
        self._compute_targets = compute_targets
        self._is_void = is_void
        self._waiting: deque[tuple[ShardCommand, Reply]] = deque()
        self._held: dict[GroupId, list[tuple[ShardCommand, Reply]]] = {}
        self._follow_ups: list[tuple[Shard, ReconcileMember, Reply]] = []
        self._handled = 0
        self._is_turn_due = False

    @property
    def is_busy(self) -> bool:
        """Whether there is more than a turn can take."""
        return bool(self._waiting)

    @property
    def has_any(self) -> bool:
        """Whether anything waits, be it held."""
        return bool(self._waiting or self._held)

    def hold(self, group_id: GroupId) -> None:
        """What members of this group say waits from now on, until ``let_go``."""
        self._held.setdefault(group_id, [])

    def let_go(self, group_id: GroupId) -> None:
        """Handle what has waited, in the order in which it came, before all that waits."""
        self._waiting.extendleft(reversed(self._held.pop(group_id, [])))
        self._request_turn()

    def submit(self, command: ShardCommand, reply: Reply) -> None:
        """Handle a member's command now, or after all that waits."""
        if self._waiting or not self._has_room():
            self._waiting.append((command, reply))
        else:
            self._take(command, reply)
        self._request_turn()

    def _take(self, command: ShardCommand, reply: Reply) -> None:
        if command.group_id in self._held:
            self._held[command.group_id].append((command, reply))
            return
        self._handled += 1
        if isinstance(command, ExpireMember | ExpireClassicDeadline) and self._is_void(command):
            reply(Done())
        else:
            self._handle_alone(command, reply, None)

    def follow_up(self, shard: Shard, command: ReconcileMember, reply: Reply) -> None:
        """The second half of a heartbeat, for the end of the batch that is gathered."""
        self._follow_ups.append((shard, command, reply))
        self._writer.request_flush()

    def close_batch(self) -> None:
        """Targets for what was gathered, and then the second halves of heartbeats."""
        while True:
            self._compute_targets()
            if not self._follow_ups:
                return
            follow_ups, self._follow_ups = self._follow_ups, []
            for shard, command, reply in follow_ups:
                self._handle_alone(command, reply, shard)

    def _handle_alone(self, command: ShardCommand, reply: Reply, shard: Shard | None) -> None:
        """Nobody but the client of the command hears of what fails: others are in this turn."""
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
        # Not work of ``Slices``: it gives commands their order, those that come in between too.
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
