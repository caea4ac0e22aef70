"""Requests of a relay connection: which pass, which are looked at, which are answered here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gateway.codec.decoding import DecodeError
from gateway.rewriting.coordinators import FIND_COORDINATOR_KEY, read_find_coordinator
from gateway.rewriting.naming import CannotRewrite
from upstream.relay.frames.exchanges import Exchange, Exchanges
from upstream.relay.frames.group_frames import (
    GROUP_KEYS,
    GroupFrame,
    find_body_of_request,
    read_group_frame,
)
from upstream.relay.frames.request_heads import (
    HEAD_BYTES,
    PRODUCE_KEY,
    RequestHead,
    has_response,
    is_relayed,
    looks_like_request,
    read_head,
)
from upstream.relay.frames.splitting import BadFrame, Fate, Splitter
from upstream.relay.group_requests import Answered, decide
from upstream.relay.relaying import Relaying

_SASL_HANDSHAKE: Final = 17


class RequestFlow:
    """``send`` writes to the broker; ``clock`` gives the loop's time."""

    def __init__(
        self,
        relaying: Relaying,
        exchanges: Exchanges,
        send: Callable[[bytes], None],
        note_wait: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self._relaying = relaying
        self._exchanges = exchanges
        self._send = send
        self._note_wait = note_wait
        self._clock = clock
        self._held_head = RequestHead(0, 0, 0, 0)
        self._may_be_token = False
        unanswered_max = relaying.settings.unanswered_max
        self.splitter = Splitter(
            self._decide,
            send,
            self._on_whole,
            relaying.hold_request,
            relaying.release,
            must_stop=lambda: len(exchanges) >= unanswered_max,
        )

    def _decide(self, data: bytes, pos: int, end: int, size: int) -> Fate:
        if self._may_be_token and size + 4 < HEAD_BYTES:
            return self._pass_token()
        if end - pos < HEAD_BYTES:
            return Fate.UNKNOWN
        head = read_head(data, pos)
        if self._may_be_token and not looks_like_request(head, size):
            return self._pass_token()
        if not is_relayed(head.key, head.version):
            raise BadFrame(f"API {head.key} in version {head.version} is not relayed")
        return self._decide_request(head, data, pos, min(end, pos + 4 + size))

    def _decide_request(self, head: RequestHead, data: bytes, pos: int, end: int) -> Fate:
        key = head.key
        is_held = key in GROUP_KEYS or key == FIND_COORDINATOR_KEY
        if key == PRODUCE_KEY:
            try:
                is_answered = has_response(head, data, pos, end)
            except DecodeError as error:
                raise BadFrame(str(error)) from error
            if is_answered is None:
                return Fate.UNKNOWN
        else:
            is_answered = True
        self._may_be_token = key == _SASL_HANDSHAKE and head.version == 0
        if is_held:
            self._held_head = head
            return Fate.HOLD
        if is_answered:
            self._exchanges.ask(Exchange(key, head.version, head.correlation_id))
        return Fate.PASS

    def _pass_token(self) -> Fate:
        self._exchanges.ask(Exchange(-1, 0, 0, is_token=True))
        return Fate.PASS

    def _on_whole(self, frame: bytes) -> None:
        head = self._held_head
        if head.key == FIND_COORDINATOR_KEY:
            exchange = Exchange(head.key, head.version, head.correlation_id)
            try:
                body = frame[find_body_of_request(head, frame) :]
                exchange.asked = read_find_coordinator(head.version, body)
            except (CannotRewrite, DecodeError) as error:
                raise BadFrame(str(error)) from error
            self._exchanges.ask(exchange)
            self._send(frame)
            return
        self._go_on(read_group_frame(head, frame))

    def _go_on(self, request: GroupFrame) -> None:
        decided = decide(request, self._relaying, self._clock())
        exchange = decided.exchange
        if isinstance(decided, Answered):
            self._relaying.statistics.relay_requests_answered += 1
            self._exchanges.answer(exchange, decided.frame)
            return
        self._exchanges.ask(exchange)
        if exchange.waits is not None:
            self._note_wait(exchange.group_id)
        self._send(decided.frame)
