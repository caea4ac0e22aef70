"""The sending half of a connection: responses in request order, unsent bytes, closing."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from gateway.api import RequestContext
from gateway.connection.failures import encode_failure
from gateway.connection.shared import Shared
from gateway.making import Making
from gateway.pending import Pending

logger = logging.getLogger("muster.gateway")

JOIN_LIMIT: Final = 64 * 1024
"""Smaller responses are joined into one write; larger ones are counted as soon as written."""
_LINGER_S: Final = 5.0


class Answering(asyncio.Protocol):
    """The layer of a ``Connection`` that sends responses and closes.

    It is a base class rather than an attribute because the extra hop would cost on the hot path.
    """

    # Slots here and in the next layer, because an instance with more than 30 other attributes gets
    # a dictionary of its own: one of a kilobyte, and slower.
    __slots__ = (
        "_answer_bytes",
        "_heard_at",
        "_is_held",
        "_made_bytes",
        "_node",
        "_out",
        "_out_bytes",
        "_peer",
        "_shared",
        "_stalled_since",
        "_unsent",
        "making",
        "transport",
        "unanswered",
    )

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._node = shared.node
        self.transport: asyncio.Transport | None = None
        self.unanswered: deque[RequestContext | Pending] = deque()
        self._out: list[bytes] | None = None
        self._out_bytes = 0
        self._answer_bytes = 0
        self._unsent = 0
        self._made_bytes = 0
        self.making = Making()
        self._is_held = False
        self._heard_at = 0.0
        self._stalled_since: float | None = None
        self._peer = "?"

    def _ask_for_a_turn(self) -> None:
        """Schedule the deferred frames for a later iteration, unless they still have to wait."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        return self.transport is None

    def is_latest(self, context: RequestContext) -> bool:
        return bool(self.unanswered) and self.unanswered[-1] is context

    def deliver(self, context: RequestContext, body: bytes | None) -> None:
        if context.answered:
            logger.error("kafka_double_reply api=%s", context.api.name)
            return
        context.answered = True
        if context.began_s:
            self._shared.times.add(context.route.api.key, context.began_s)
        context.body = body
        if body is not None:
            self._answer_bytes += len(body)
        self.making.end(context)
        if self._made_bytes and context.is_large:
            self.hold(0)
        self.send_answered()

    def hold(self, size: int) -> None:
        self._shared.held.requests += size - self._made_bytes
        self._made_bytes = size
        if size:
            self._shared.held.check_requests(self._heard_at)

    def send_answered(self) -> None:
        """Send the responses at the head of the queue, up to the first unanswered request."""
        queue = self.unanswered
        while queue and queue[0].answered:
            context = queue.popleft()
            if isinstance(context, RequestContext):
                self._write_answer(context)
            else:
                self._write(context.frame)
                if context.began_s:
                    self._shared.times.add_repeat(context.key, context.began_s)
        if self._is_held:
            self._ask_for_a_turn()

    def _write_answer(self, context: RequestContext) -> None:
        body, route = context.body, context.route
        if body is None:
            return
        self._answer_bytes -= len(body)
        head = route.pack_head(route.head_size + len(body), context.correlation)
        if len(body) < JOIN_LIMIT:
            self._write(head + body)
        else:
            self._write(head)
            self._write(body)

    def send(self, frame: bytes) -> None:
        self._write(frame)

    def _write(self, data: bytes) -> None:
        """Write behind earlier writes; while frames are being handled, collect for one write."""
        if self._out is not None:
            self._out.append(data)
            self._out_bytes += len(data)
        elif self.transport is not None:
            self.transport.write(data)
            if len(data) >= JOIN_LIMIT:
                self._note_answers()

    def _note_answers(self) -> None:
        self.measure_answers(self._heard_at)
        self._shared.held.check_answers()

    def measure_answers(self, now: float) -> float:
        """Count the unsent response bytes; their weight grows with the time the client stalls."""
        assert self.transport is not None
        size = self.transport.get_write_buffer_size() + self._answer_bytes
        self._shared.held.answers += size - self._unsent
        self._unsent = size
        stalled = self._stalled_since
        return size * (1.0 if stalled is None else 1.0 + now - stalled)

    def fail(self, context: RequestContext, error: BaseException) -> None:
        body = encode_failure(context, self._peer, error)
        if body is not None:
            self.deliver(context, body)
        elif not context.answered:
            self.close()

    def refuse(self, reason: str, detail: str) -> None:
        """Log a refusal and close, after the responses that are already written."""
        transport = self.transport
        self._shared.refusals.refuse(reason, self._peer, detail)
        self.close()
        if transport is not None and transport.get_write_buffer_size() > JOIN_LIMIT:
            transport.abort()

    def cut(self, reason: str, detail: str) -> None:
        """Log a refusal and close at once; unsent responses are lost."""
        self._shared.refusals.refuse(reason, self._peer, detail)
        self.abort()

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()
            self.connection_lost(None)

    def close(self) -> None:
        """Close once the written responses are sent; abandon the requests that wait."""
        transport = self.transport
        if transport is None:
            return
        if self._out:
            transport.write(b"".join(self._out))
            self._out.clear()
        transport.close()
        if transport.get_write_buffer_size():
            # A client that does not read must not keep the socket open for ever.
            self._node.clock.call_later(_LINGER_S, transport.abort)
        self.connection_lost(None)
