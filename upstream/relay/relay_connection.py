"""One connection of a client, and the connection to the broker that it stands for.

What either sends goes to the other as it comes. Neither is read while the other takes nothing, so
little more than ``unsent_bytes_max`` is in memory for each direction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from gateway.rewriting.naming import CannotRewrite
from upstream.cluster.cluster import ClusterUnreachable, RawLink
from upstream.relay.brakes import Brake, Hold
from upstream.relay.broker_side import BrokerSide
from upstream.relay.frames.exchanges import Exchange, Exchanges
from upstream.relay.frames.splitting import BadFrame
from upstream.relay.keep_alive import keep_alive
from upstream.relay.relaying import Relaying
from upstream.relay.request_flow import RequestFlow
from upstream.relay.response_flow import ResponseFlow


class RelayConnection(asyncio.Protocol):
    """The client's side, as asyncio's protocol; ``on_closed`` is called once.

    More than 15 attributes: it is two connections, and they end together.
    """

    # More than 15 attributes: two transports, each with what waits for the other.

    def __init__(
        self, relaying: Relaying, node_id: int, on_closed: Callable[[RelayConnection], None]
    ) -> None:
        self._relaying = relaying
        self._node_id = node_id
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._client: asyncio.Transport | None = None
        self._broker: asyncio.Transport | None = None
        self._link: RawLink | None = None
        self._client_brake = Brake()
        self._broker_brake = Brake()
        self._early = b""
        self._connecting: asyncio.Task[None] | None = None
        self._is_over = False
        self._has_too_many = False
        self._full_since_s: dict[Hold, float] = {}
        self._heard_s = self._loop.time()
        self._held: tuple[int, int] | None = None
        self._held_since_s = 0.0
        self._exchanges = Exchanges(self._send_to_client)
        self._requests = RequestFlow(
            relaying,
            self._exchanges,
            self._send_to_broker,
            lambda group_id: relaying.waits.add(group_id, self),
            self._loop.time,
        )
        self._responses = ResponseFlow(
            relaying, self._exchanges, self._send_to_client, self._note_answered, self._loop.time
        )

    # ------------------------------------------------------------------------- the client's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio: a client has connected; it is not read before the broker is."""
        # uvloop's transports are no subclasses of asyncio's.
        client = self._client = cast(asyncio.Transport, transport)
        client.set_write_buffer_limits(high=self._relaying.settings.unsent_bytes_max)
        keep_alive(client)
        self._client_brake.hold(Hold.NOT_CONNECTED)
        self._client_brake.fit(client)
        self._connecting = self._loop.create_task(self._connect())

    def data_received(self, data: bytes) -> None:
        """Asyncio: bytes of the client."""
        self._heard_s = self._loop.time()
        if self._is_over:
            return
        if self._broker is None:
            # What the loop had read before it was told not to.
            self._early += data
            return
        self._take_requests(data)

    def pause_writing(self) -> None:
        """Asyncio: the client does not take what there is to send."""
        self._note_full(Hold.OWN_FULL, True)
        self._broker_brake.hold(Hold.OTHER_FULL)
        self._client_brake.hold(Hold.OWN_FULL)

    def resume_writing(self) -> None:
        """Asyncio: the client has taken it."""
        self._note_full(Hold.OWN_FULL, False)
        self._client_brake.release(Hold.OWN_FULL)
        self._broker_brake.release(Hold.OTHER_FULL)

    def connection_lost(self, exc: Exception | None) -> None:
        """Asyncio: the client is gone."""
        self._end()

    # ------------------------------------------------------------------------- the broker's side

    async def _connect(self) -> None:
        relaying = self._relaying
        try:
            async with asyncio.timeout(relaying.settings.connect_timeout_ms / 1_000):
                link = self._link = await relaying.cluster.open_raw(self._node_id)
            broker = link.hand_over(BrokerSide(self))
            self._broker = broker
        except (ClusterUnreachable, TimeoutError):
            return
        finally:
            if self._broker is None:
                self.close("no-broker")
        broker.set_write_buffer_limits(high=relaying.settings.unsent_bytes_max)
        keep_alive(broker)
        self._broker_brake.fit(broker)
        if self._early:
            early, self._early = self._early, b""
            self.data_received(early)
        self._client_brake.release(Hold.NOT_CONNECTED)

    def on_broker_data(self, data: bytes) -> None:
        """Bytes of the broker."""
        self._heard_s = self._loop.time()
        if self._is_over:
            return
        try:
            self._responses.splitter.feed(data)
        except (BadFrame, CannotRewrite):
            self.close("bad-response")
            return
        self._look_at_unanswered()

    def on_broker_full(self, is_full: bool) -> None:
        """Whether the broker does not take what there is to send."""
        self._note_full(Hold.OTHER_FULL, is_full)
        if is_full:
            self._client_brake.hold(Hold.OTHER_FULL)
        else:
            self._client_brake.release(Hold.OTHER_FULL)

    def on_broker_lost(self) -> None:
        """The broker has ended the connection: what it sent before still goes to the client."""
        if self._is_over:
            return
        if self._client is not None:
            self._client.close()
            # A client that reads nothing must not keep its connection.
            patience_s = self._relaying.settings.stalled_ms / 1_000
            self._loop.call_later(patience_s, self._client.abort)
        self._end()

    # ---------------------------------------------------------------------------------- answers

    def _send_to_client(self, data: bytes) -> None:
        if self._client is not None:
            self._relaying.statistics.relayed_bytes["to_client"] += len(data)
            self._client.write(data)

    def _send_to_broker(self, data: bytes) -> None:
        if self._broker is not None:
            self._relaying.statistics.relayed_bytes["to_cluster"] += len(data)
            self._broker.write(data)

    def _note_answered(self, exchange: Exchange) -> None:
        if exchange.waits is not None:
            self._relaying.waits.remove(exchange.group_id, self)

    def end_waits(self, group_id: str) -> None:
        """Answer the waiting requests of the group with NOT_COORDINATOR."""
        now = self._loop.time()
        for exchange in self._exchanges.find_waiting(group_id):
            assert exchange.waits is not None
            if self._exchanges.end(exchange, exchange.waits, now):
                self._relaying.statistics.relay_requests_answered += 1
        self._look_at_unanswered()

    def _take_requests(self, data: bytes) -> None:
        try:
            self._requests.splitter.feed(data)
        except BadFrame:
            self.close("bad-request")
            return
        if len(self._exchanges) >= self._relaying.settings.unanswered_max:
            self._has_too_many = True
            self._client_brake.hold(Hold.TOO_MANY_UNANSWERED)

    def _look_at_unanswered(self) -> None:
        """Go on with the client's requests when half of those that were too many are answered."""
        most = self._relaying.settings.unanswered_max
        if self._has_too_many and not self._is_over and len(self._exchanges) <= most // 2:
            self._has_too_many = False
            self._take_requests(b"")
            if not self._has_too_many:
                self._client_brake.release(Hold.TOO_MANY_UNANSWERED)

    # ---------------------------------------------------------------------------------- the end

    def check(self, now: float) -> None:
        """Close if nothing has come for long, nothing is taken, or a late answer does not come."""
        settings = self._relaying.settings
        late = self._exchanges.awaited
        if now - self._heard_s >= settings.idle_ms / 1_000:
            self.close("idle")
        elif self._is_stalled(now, now - settings.stalled_ms / 1_000):
            self.close("stalled")
        elif (
            late is not None
            and late.is_over
            and (now - late.over_at_s >= settings.late_answer_ms / 1_000)
        ):
            # Requests behind it wait in vain: brokers may never answer the SyncGroup of a member
            # that was taken out of the group.
            self.close("no-late-answer")

    def _is_stalled(self, now: float, since_s: float) -> bool:
        """Whether nothing is taken since then, or a frame that is held has not come to its end."""
        if any(full_s <= since_s for full_s in self._full_since_s.values()):
            return True
        requests, responses = self._requests.splitter, self._responses.splitter
        held = requests.held_frames, responses.held_frames
        if not requests.held_bytes + responses.held_bytes:
            self._held = None
        elif held != self._held:
            self._held, self._held_since_s = held, now
        return self._held is not None and self._held_since_s <= since_s

    def close(self, reason: str) -> None:
        """Close both sides at once."""
        if self._is_over:
            return
        self._relaying.statistics.relay_connections_closed[reason] += 1
        if self._client is not None:
            self._client.abort()
        self._end()

    def _note_full(self, side: Hold, is_full: bool) -> None:
        if is_full:
            self._full_since_s[side] = self._loop.time()
        else:
            self._full_since_s.pop(side, None)

    def _end(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._connecting is not None and self._connecting is not asyncio.current_task():
            self._connecting.cancel()
        if self._link is not None:
            self._link.close()
        for exchange in self._exchanges.drop():
            self._note_answered(exchange)
            if exchange.is_new_member:
                # No broker has said that there is such a member: not even who asked is known.
                self._relaying.members.forget(exchange.group_id, exchange.member_id)
        for flow in (self._requests, self._responses):
            self._relaying.release(flow.splitter.held_bytes)
        self._on_closed(self)
