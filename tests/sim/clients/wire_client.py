"""A KIP-848 client: one heartbeat at a time, full after anything that was lost."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from coordinator.runtime.api import Answer
from model.commands.command import Command
from model.commands.consumer import UNCHANGED, ConsumerGroupHeartbeat, ConsumerGroupLeave
from model.errors import ErrorCode, GroupError
from model.ids import TopicName
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from tests.sim.clients.client import Client, Habits
from tests.sim.cluster.network import Way
from tests.support.shadow import places

if TYPE_CHECKING:
    from tests.sim.world import World

FENCING = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.FENCED_INSTANCE_ID,
)
REQUEST_TIMEOUT_MS = 2_000
RETRY_MS = 100
LEAVE_RETRIES = 3


class WireClient(Client):
    """Heartbeats when its interval has passed, or when it has something to say."""

    def __init__(
        self, world: World, group: str, name: str, names: tuple[str, ...], habits: Habits
    ) -> None:
        super().__init__(world, group, name, names, habits)
        self._to_server = Way(world.network, "message lost")
        self._to_client = Way(world.network, "response lost")
        self._request = 0
        self._answered = (0, 0)
        self._repeated = 0
        self._in_flight: ConsumerGroupHeartbeat | ConsumerGroupLeave | None = None
        self._sent_ms = 0
        self._needs_full = True
        self._is_dirty = False
        self._said_names: tuple[TopicName, ...] = ()
        self._timer = 0
        self._is_doubtful = False
        self._leaves_left = 0
        self._returns_after_ms: int | None = None

    def start(self) -> None:
        self._beat()
        self.later(self.habits.commit_every_ms, self._commit)

    def change_names(self, names: tuple[str, ...]) -> None:
        self.names = tuple(TopicName(name) for name in names)
        self._beat_soon()

    def leave(self, returns_after_ms: int | None) -> None:
        if self.is_out:
            return
        may_be_member = self.epoch > 0 or self._in_flight is not None
        self.abandon()
        self.is_out = True
        self.choose_leave(returns_after_ms is not None)
        self._returns_after_ms = returns_after_ms
        self._leaves_left = LEAVE_RETRIES if may_be_member else 0
        self._send_leave()

    # ------------------------------------------------------------------------------- heartbeats

    def _beat_after(self, delay_ms: int) -> None:
        self._timer += 1
        timer = self._timer

        def beat() -> None:
            if timer == self._timer:
                self._beat()

        self.later(delay_ms, beat)

    def _beat_soon(self) -> None:
        if self._in_flight is None and not self.is_out:
            self._beat_after(0)

    def _beat(self) -> None:
        if self._in_flight is not None or self.is_out:
            return
        if self.abandon_if_expired() or self.epoch == 0:
            self._needs_full = True
        self._send(self._compose())

    def _compose(self) -> ConsumerGroupHeartbeat:
        full = self.full_heartbeat()
        if self._needs_full:
            return full
        has_changed = self.names != self._said_names
        return replace(
            self.compose_partial(says_owned=self._is_dirty),
            subscribed_topic_names=full.subscribed_topic_names if has_changed else UNCHANGED,
            subscribed_topic_regex=full.subscribed_topic_regex if has_changed else UNCHANGED,
        )

    def _send(self, command: ConsumerGroupHeartbeat | ConsumerGroupLeave) -> None:
        self._request += 1
        request = self._request
        self._in_flight = command
        self._sent_ms = self.world.time.now_ms
        self._carry(command, request)
        self.later(REQUEST_TIMEOUT_MS, partial(self._timed_out, request))

    def _carry(self, command: Command, request: int) -> None:
        def send(answer: Answer) -> None:
            receive = partial(self.receive, request, answer)
            self._to_client.carry(lambda: self.world.deliver_to(self, receive, answer))

        def deliver() -> None:
            times = 2 if self.world.faults.strikes("message duplicated") else 1
            if times > 1:
                self._repeated = request
            self.world.deliver(self, command, send, times)

        self._to_server.carry(deliver)

    def receive(self, request: int, answer: Answer) -> None:
        """An answer has arrived; one of a request that was given up means nothing."""
        if self._answered == (request, self._incarnation):
            self._answered_twice(answer)
            return
        if request != self._request or self._in_flight is None:
            return
        command, self._in_flight = self._in_flight, None
        self._is_doubtful = False
        self._answered = (request, self._incarnation)
        if isinstance(command, ConsumerGroupLeave):
            self._left()
        elif isinstance(answer, GroupError):
            self._refused(answer)
        elif isinstance(answer, ConsumerGroupHeartbeatResponse):
            self._accepted(command, answer)

    def _answered_twice(self, answer: Answer) -> None:
        """The request arrived twice, and this is the later word of the server."""
        if isinstance(answer, ConsumerGroupHeartbeatResponse) and not self.is_out:
            self.note_epoch(answer.member_epoch)
            self._told(answer)
            if self._is_dirty:
                self._beat_soon()

    def _told(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        if answer.assignment is not None:
            self.told = places(answer.assignment)
        self._is_dirty |= self.reconcile()

    def _accepted(
        self, command: ConsumerGroupHeartbeat, answer: ConsumerGroupHeartbeatResponse
    ) -> None:
        self.note_epoch(answer.member_epoch)
        self.extend_lease(self._sent_ms)
        # Which of two answers is the later word it may never learn: it says everything again.
        self._needs_full = self._repeated == self._request
        if isinstance(command.subscribed_topic_names, tuple):
            regex = command.subscribed_topic_regex
            pattern = (TopicName(f"/{regex}"),) if regex else ()
            self._said_names = (*command.subscribed_topic_names, *pattern)
        if command.owned == self.owned_topics():
            self._is_dirty = False
        if self.abandon_if_expired():
            self._needs_full = True
            self._beat_after(RETRY_MS)
            return
        self._told(answer)
        has_more = self._is_dirty or self.names != self._said_names
        self._beat_after(0 if has_more else answer.heartbeat_interval_ms)

    def _refused(self, error: GroupError) -> None:
        # A group of another type stays what it is.
        by_settings = error.code in (
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            ErrorCode.UNSUPPORTED_ASSIGNOR,
        ) or (error.code is ErrorCode.GROUP_ID_NOT_FOUND and self.epoch == 0)
        if error.code in FENCING:
            self.abandon()
        self._needs_full = True
        self._beat_after(REQUEST_TIMEOUT_MS if by_settings else RETRY_MS)

    def _timed_out(self, request: int) -> None:
        if request != self._request or self._in_flight is None:
            return
        command, self._in_flight = self._in_flight, None
        self._needs_full = True
        if isinstance(command, ConsumerGroupHeartbeat):
            self._is_doubtful |= command.owned is not None
            self._beat_after(RETRY_MS)
        else:
            self._send_leave()

    def can_gain(self) -> bool:
        """A request that is on its way, given up or not, must not tell less than what is so."""
        command = self._in_flight
        if self._is_doubtful:
            return False
        return not isinstance(command, ConsumerGroupHeartbeat) or command.owned is None

    def revoked(self) -> None:
        self._is_dirty = True
        self.reconcile()
        self._beat_soon()

    # ---------------------------------------------------------------------------------- leaving

    def _send_leave(self) -> None:
        if self._leaves_left == 0:
            self._left()
        else:
            self._leaves_left -= 1
            self._send(self.leave_command())

    def _left(self) -> None:
        """Answered, or given up: the session timeout will do the rest."""
        if self._returns_after_ms is not None:
            self.later(self._returns_after_ms, self._return)

    def _return(self) -> None:
        if self.world.faults.is_healed:
            return
        self.is_out = False
        self.return_by_a_name()
        self._needs_full = True
        self._beat_after(0)

    # ---------------------------------------------------------------------------------- commits

    def _commit(self) -> None:
        self.later(self.habits.commit_every_ms, self._commit)
        command = None if self.is_out else self.compute_commit()
        if command is None:
            return

        def deliver() -> None:
            self.world.deliver(self, command, lambda _: None)

        self._to_server.carry(deliver)
        if self.world.faults.strikes("message duplicated"):
            self._to_server.carry_late(deliver)
