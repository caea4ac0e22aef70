"""A client of a session stream: told of every change, acknowledges, resumes after a break."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from model.errors import ErrorCode, GroupError
from model.ids import TopicName
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from tests.sim.clients.client import Client, Habits
from tests.sim.cluster.network import Way
from tests.sim.cluster.session_door import (
    Acknowledge,
    Action,
    Commit,
    Join,
    Leave,
    Pong,
    Stream,
    Update,
)
from tests.support.shadow import places

if TYPE_CHECKING:
    from tests.sim.world import World

RETRY_MS = 100
REFUSED_RETRY_MS = 2_000
SILENCE_INTERVALS = 2


class Connection:
    """The client's end of one stream. A lost message breaks it, both ways, unseen."""

    def __init__(self, client: SessionClient) -> None:
        self.to_server = Way(client.world.network, "message lost")
        self.to_client = Way(client.world.network, "response lost")
        self.is_broken = False
        self.server: Stream | None = None
        self.process: object = None


class SessionClient(Client):
    """One member on one stream at a time."""

    def __init__(
        self, world: World, group: str, name: str, names: tuple[str, ...], habits: Habits
    ) -> None:
        super().__init__(world, group, name, names, habits)
        self._connection = Connection(self)
        self._sequence = 0
        self._sent: deque[tuple[int, int]] = deque()
        self._covered_from: int | None = None
        self._join_id = 0
        self._join_sent_ms = 0
        self._assignment_id = 0
        self._heard_ms = 0
        self._returns_after_ms: int | None = None

    def start(self) -> None:
        self._connect()
        self._keep_alive()
        self.later(self.habits.commit_every_ms, self._commit)

    def change_names(self, names: tuple[str, ...]) -> None:
        """A Join on the stream that there is."""
        self.names = tuple(TopicName(name) for name in names)
        if not self.is_out:
            self._join()

    def leave(self, returns_after_ms: int | None) -> None:
        if self.is_out:
            return
        self.abandon()
        self._covered_from = None
        self.is_out = True
        self._returns_after_ms = returns_after_ms
        self.choose_leave(returns_after_ms is not None)
        self._send(Leave(self.leave_command()))
        if returns_after_ms is not None:
            self.later(returns_after_ms, self._return)

    def _return(self) -> None:
        if self.world.faults.is_healed:
            return
        self.is_out = False
        self.return_by_a_name()
        self._connect()

    # -------------------------------------------------------------------------------- streams

    def _connect(self) -> None:
        """A new stream; the old one is left as it is, the server may not notice."""
        old = self._connection
        self._connection = Connection(self)
        # What the old stream still carries to the server arrives before what this one will.
        self._connection.to_server.follow(old.to_server)
        self._sent.clear()
        self._heard_ms = self.world.time.now_ms
        self._join()

    def _join(self) -> None:
        self.abandon_if_expired()
        self._join_id += 1
        self._join_sent_ms = self.world.time.now_ms
        self._covered_from = None
        self.told = None
        self._send(Join(self._join_id, self.full_heartbeat()))

    def _keep_alive(self) -> None:
        interval_ms = self.world.settings.group_consumer_heartbeat_interval_ms
        self.later(interval_ms, self._keep_alive)
        if self.is_out:
            return
        if (
            self.abandon_if_expired()
            or self.world.time.now_ms - self._heard_ms > SILENCE_INTERVALS * interval_ms
        ):
            self._connect()
        else:
            self._send(Pong())

    def _send(self, action: Action) -> None:
        connection = self._connection
        self._sequence += 1
        sequence = self._sequence
        self._sent.append((sequence, self.world.time.now_ms))
        if self.world.faults.strikes("stream break"):
            connection.is_broken = True
        if connection.is_broken:
            return

        def send(update: Update) -> None:
            if connection.is_broken:
                return
            receive = partial(self._receive, connection, update)
            if not connection.to_client.carry(lambda: self.world.deliver_to(self, receive, update)):
                connection.is_broken = True

        deliver = partial(self.world.deliver_action, self, connection, sequence, action, send)
        if not connection.to_server.carry(deliver):
            connection.is_broken = True

    # ------------------------------------------------------------------------------- messages

    def _receive(self, connection: Connection, update: Update) -> None:
        if connection is not self._connection or self.is_out:
            return
        self._heard_ms = self.world.time.now_ms
        self._note_renewed(update.renewed_sequence)
        if self.abandon_if_expired():
            self._connect()
            return
        if update.join_id != self._join_id and update.kind != "nothing":
            return
        match update.kind:
            case "assignment":
                self._assigned(update)
            case "fenced":
                code = update.answer.code if isinstance(update.answer, GroupError) else None
                # A group of another type stays what it is.
                by_settings = code in (
                    ErrorCode.GROUP_MAX_SIZE_REACHED,
                    ErrorCode.UNSUPPORTED_ASSIGNOR,
                ) or (code is ErrorCode.GROUP_ID_NOT_FOUND and self.epoch == 0)
                self.abandon()
                self._covered_from = None
                wait_ms = REFUSED_RETRY_MS if by_settings else RETRY_MS
                self.later(wait_ms, partial(self._join_again, self._join_id))
            case "refused":
                self.later(RETRY_MS, partial(self._join_again, self._join_id))
            case _:
                pass

    def _join_again(self, join_id: int) -> None:
        if join_id == self._join_id and not self.is_out:
            self._join()

    def _note_renewed(self, sequence: int) -> None:
        while self._sent and self._sent[0][0] <= sequence:
            sent_sequence, sent_ms = self._sent.popleft()
            if self._covered_from is not None and sent_sequence >= self._covered_from:
                self.extend_lease(sent_ms)

    def _assigned(self, update: Update) -> None:
        answer = update.answer
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        if self._covered_from is None:
            self._covered_from = self._sequence + 1
            self.extend_lease(self._join_sent_ms)
        self.note_epoch(answer.member_epoch)
        if self.abandon_if_expired():
            # It stood still since it joined, and the answer is as old.
            self._connect()
            return
        self._assignment_id = update.assignment_id
        if answer.assignment is not None:
            self.told = places(answer.assignment)
        self.reconcile()
        self._acknowledge()

    def can_gain(self) -> bool:
        """The server asks for nothing between an assignment and its acknowledgement."""
        return True

    def revoked(self) -> None:
        self.reconcile()
        self._acknowledge()

    def _acknowledge(self) -> None:
        """Once it is at what it was told."""
        if self.is_revoking or self._covered_from is None or self.is_out:
            return
        if self.told is not None and self.owned != self.told:
            return
        self._send(Acknowledge(self._assignment_id, self.epoch, self.owned_topics()))

    # ---------------------------------------------------------------------------------- commits

    def _commit(self) -> None:
        self.later(self.habits.commit_every_ms, self._commit)
        command = None if self.is_out else self.compute_commit()
        if command is not None:
            self._send(Commit(command))
