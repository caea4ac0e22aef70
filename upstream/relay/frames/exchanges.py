"""The requests of a connection that have no response yet, in the order of the client's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from gateway.rewriting.coordinators import Asked
from upstream.relay.frames.group_frames import GroupFrame
from upstream.relay.groups.seen_members import SeenMember


@dataclass(slots=True, eq=False)
class Exchange:
    """One request. ``is_over``: the client has its answer, and the broker's is dropped."""

    # More than 15 attributes: what each kind of request leaves for its response, in one record.

    key: int
    version: int
    correlation_id: int
    asked: Asked | None = None
    """What a FindCoordinator request asks for."""
    request: GroupFrame | None = None
    """A request of several groups, some of which are refused here."""
    refused: tuple[str, ...] = ()
    cause: str = ""
    """Why the group of ``request`` is taken, once the broker has shown that the client may read
    it."""
    group_id: str = ""
    member_id: str = ""
    client_id: str = ""
    joining: SeenMember | None = None
    """What a JoinGroup request says of its member."""
    is_new_member: bool = False
    left: tuple[str, ...] = ()
    """The members that a LeaveGroup request takes out."""
    waits: bytes | None = None
    """The answer with which the waiting can be ended, if the request may wait in the broker."""
    answer: bytes | None = None
    is_token: bool = False
    is_over: bool = False
    over_at_s: float = 0.0


class Exchanges:
    """``send`` gets the answers that are made here, when their turn has come."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send
        self._to_client: deque[Exchange] = deque()
        self._from_broker: deque[Exchange] = deque()
        self._passing: Exchange | None = None

    def __len__(self) -> int:
        return len(self._to_client)

    @property
    def awaited(self) -> Exchange | None:
        """The exchange that the broker answers next."""
        return self._from_broker[0] if self._from_broker else None

    def ask(self, exchange: Exchange) -> None:
        """A request goes to the broker."""
        if not exchange.is_token:
            # A client that sends requests has the answers to all of its tokens: some have none.
            while self._from_broker and self._from_broker[0].is_token:
                self._to_client.remove(self._from_broker.popleft())
        self._to_client.append(exchange)
        self._from_broker.append(exchange)

    def answer(self, exchange: Exchange, frame: bytes) -> None:
        """A request is answered here, after those before it."""
        exchange.answer = frame
        self._to_client.append(exchange)
        self.flush()

    def end(self, exchange: Exchange, frame: bytes, now: float) -> bool:
        """Answer here what waits in the broker, whose answer is then dropped; whether it waited."""
        if exchange.is_over or exchange is self._passing:
            return False
        exchange.answer, exchange.is_over, exchange.over_at_s = frame, True, now
        self.flush()
        return True

    def find_waiting(self, group_id: str) -> tuple[Exchange, ...]:
        """The requests of a group that may wait in the broker."""
        return tuple(
            exchange
            for exchange in self._from_broker
            if exchange.waits is not None and exchange.group_id == group_id
        )

    def begin_frame(self) -> None:
        """The answer to ``awaited`` begins to come, and passes."""
        self._passing = self._from_broker.popleft()
        assert self._to_client[0] is self._passing, "the broker answers in order"

    def end_frame(self) -> bool:
        """All of it has come; whether answers made here are next, which ``flush`` sends."""
        self._passing = None
        self._to_client.popleft()
        return bool(self._to_client) and self._to_client[0].answer is not None

    def drop_frame(self) -> None:
        """The answer to ``awaited`` has come, and is not for the client."""
        self._from_broker.popleft()

    def settle(self, frame: bytes) -> None:
        """Send ``frame`` for the answer to ``awaited``."""
        exchange = self._from_broker.popleft()
        assert self._to_client[0] is exchange, "the broker answers in order"
        self._to_client.popleft()
        self._send(frame)
        self.flush()

    def flush(self) -> None:
        """Send the answers made here whose turn has come."""
        queue = self._to_client
        while queue and self._passing is None and queue[0].answer is not None:
            exchange = queue.popleft()
            assert exchange.answer is not None
            self._send(exchange.answer)

    def drop(self) -> tuple[Exchange, ...]:
        """Forget all exchanges, and return those that the broker has not answered."""
        left = tuple(self._from_broker)
        self._from_broker.clear()
        self._to_client.clear()
        self._passing = None
        return left
