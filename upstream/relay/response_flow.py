"""Responses of a relay connection: which pass, which are rewritten, which are dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gateway.codec.decoding import DecodeError
from gateway.rewriting.endpoints import FETCH_KEY
from gateway.rewriting.fetch_tails import FetchTail
from gateway.rewriting.frames import is_rewritten, rewrite_frame
from gateway.rewriting.naming import CannotRewrite
from model.errors import ErrorCode
from upstream.relay.frames.exchanges import Exchange, Exchanges
from upstream.relay.frames.group_frames import merge_answer
from upstream.relay.frames.splitting import BadFrame, Fate, Splitter
from upstream.relay.group_requests import answer_probe
from upstream.relay.groups.group_responses import HEAD_BYTES, note_response
from upstream.relay.relaying import Relaying

FILTERED_BYTES: Final = 64 * 1024
"""Fetch responses of more than this are not held for the endpoints of new leaders."""


class ResponseFlow:
    """``send`` writes to the client; ``on_answered`` is told of each request that is over."""

    def __init__(
        self,
        relaying: Relaying,
        exchanges: Exchanges,
        send: Callable[[bytes], None],
        on_answered: Callable[[Exchange], None],
        clock: Callable[[], float],
    ) -> None:
        self._relaying = relaying
        self._exchanges = exchanges
        self._on_answered = on_answered
        self._clock = clock
        self.splitter = Splitter(
            self._decide,
            send,
            self._on_whole,
            relaying.hold_response,
            relaying.release,
            exchanges.end_frame,
            exchanges.flush,
        )

    def _decide(self, data: bytes, pos: int, end: int, size: int) -> Fate:
        exchanges = self._exchanges
        exchange = exchanges.awaited
        if exchange is None:
            raise BadFrame("the broker sends what nobody asked for")
        if exchange.is_token:
            exchanges.begin_frame()
            return Fate.PASS
        if end - pos < min(size + 4, HEAD_BYTES):
            return Fate.UNKNOWN
        correlation_id = int.from_bytes(data[pos + 4 : pos + 8], "big", signed=True)
        if correlation_id != exchange.correlation_id or size < 4:
            raise BadFrame("the broker answers another request than the next")
        self._on_answered(exchange)
        if exchange.is_over:
            exchanges.drop_frame()
            return Fate.DROP
        if exchange.group_id:
            note_response(exchange, data, pos, self._relaying.members, self._clock())
        if exchange.request is not None:
            return Fate.HOLD
        if not is_rewritten(exchange.key, exchange.version):
            exchanges.begin_frame()
            return Fate.PASS
        if exchange.key == FETCH_KEY and size > FILTERED_BYTES:
            exchanges.begin_frame()
            self.splitter.filter = FetchTail(exchange.version, size - 4)
            return Fate.FILTER
        return Fate.HOLD

    def _on_whole(self, frame: bytes) -> None:
        exchange = self._exchanges.awaited
        assert exchange is not None
        if exchange.request is None:
            self._exchanges.settle(
                rewrite_frame(
                    exchange.key,
                    exchange.version,
                    frame,
                    self._relaying.rewriting,
                    exchange.asked,
                )
            )
            return
        if exchange.cause:
            self._exchanges.settle(answer_probe(exchange, frame, self._relaying))
            return
        try:
            code = ErrorCode.NOT_COORDINATOR
            merged = merge_answer(exchange.request, frame, exchange.refused, code)
        except DecodeError as error:
            raise CannotRewrite(str(error)) from error
        self._exchanges.settle(merged)
