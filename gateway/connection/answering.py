"""What a connection owes: answers in the order of the requests, what of them is unsent, its end."""

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
"""Answers of fewer bytes are sent together with others; more are counted while they are unsent."""
_LINGER_S: Final = 5.0


class Answering(asyncio.Protocol):
    """The layer of a ``Connection`` that sends.

    A base class, and no part of it, so that an answer takes no hop from one object to another.
    """

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
        """Go on with the frames that had to wait, in a later turn; not if they still have to."""
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
        """Send the answers that no other has to go before."""
        queue = self.unanswered
        while queue and queue[0].answered:
            context = queue.popleft()
            if isinstance(context, RequestContext):
                self._write_answer(context)
            else:
                self._write(context.frame)
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
        """Write after all that was written, which may wait for the end of this turn's frames."""
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
        """Count what is made and not sent; its weight is how much for how long."""
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
        """Close the connection for what it sent, after the answers that it has coming."""
        transport = self.transport
        self._shared.refusals.refuse(reason, self._peer, detail)
        self.close()
        if transport is not None and transport.get_write_buffer_size() > JOIN_LIMIT:
            transport.abort()

    def cut(self, reason: str, detail: str) -> None:
        """Close the connection at once for what it does; what it has not read is lost."""
        self._shared.refusals.refuse(reason, self._peer, detail)
        self.abort()

    def abort(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()
            self.connection_lost(None)

    def close(self) -> None:
        """Close after what was answered is sent; requests that wait are abandoned."""
        transport = self.transport
        if transport is None:
            return
        if self._out:
            transport.write(b"".join(self._out))
            self._out.clear()
        transport.close()
        if transport.get_write_buffer_size():
            # A peer that does not read must not hold the socket for ever.
            self._node.clock.call_later(_LINGER_S, transport.abort)
        self.connection_lost(None)
