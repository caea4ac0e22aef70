"""A Kafka client connection: request frames in, responses out in request order.

Input is untrusted. A frame's length is checked against the limit before any of it is buffered, and
buffered bytes are bounded across all connections. Too many pipelined requests, or responses that
the client does not read, stop the reading. Requests with large responses run one at a time, as all
of a connection's requests do in Kafka (``gateway.making``). The work that a connection may do in
one event-loop iteration is bounded too (``connection_turns``). Bytes that are no Kafka request
close the connection with one log line; a handler's bug is logged and answered with an error.

A connection has three layers, each a base class of the next: ``answering`` sends, ``reading``
decides when to read, and this module turns frames into requests.

``data_received`` is the hot path: it serves a request that repeats an earlier one of its API
without decoding it, through the ``gateway.api.Repeats`` that the API registered.
"""

from __future__ import annotations

import logging
import struct
from collections import deque
from functools import partial
from time import perf_counter
from typing import Any, Final

from gateway.api import Repeats, RequestContext, Route
from gateway.codec.decoding import DecodeError
from gateway.codec.decoding_in_slices import LEAST_BYTES, SLICE_BYTES, decode_then
from gateway.connection.answering import JOIN_LIMIT
from gateway.connection.connection_reading import Reading
from gateway.connection.connection_turns import ANSWER_BYTES, TURN_S
from gateway.connection.first_looks import find_length_fault, find_other_protocol
from gateway.connection.peers import compute_advertised, compute_java_host, describe_peer
from gateway.connection.shared import Shared
from gateway.fronting.passing import Passing
from gateway.headers import API_VERSIONS_KEY, FIXED_BYTES, skip_header
from gateway.sasl.exchange import SaslExchange
from gateway.sasl.logins import Login
from gateway.wire_listener import WireListener
from model.caller import Caller
from model.errors import ErrorCode
from security.identity import NOBODY, Identity

logger = logging.getLogger("muster.gateway")

_SIZE: Final = struct.Struct(">i")


class Connection(Reading):
    """The asyncio protocol of one accepted connection."""

    # More than 15 attributes: every frame reads most of them, and another hop would cost.

    sasl: SaslExchange | None = None
    passed: Login | None = None
    passing: Passing | None = None

    def __init__(self, shared: Shared, listener: WireListener, identity: Identity = NOBODY) -> None:
        """``identity``: who its transport has shown the client to be."""
        super().__init__(shared)
        self._listener = listener
        self._identity = identity
        self._time = shared.node.clock.time
        self._routes = shared.routes.known
        self._pipelined_max = self._settings.gateway_pipelined_requests_max
        self._host = "/?"
        self._advertised = ("", 0)
        self._caller = self._compute_caller("")
        self._plain_header: bytes | None = None
        self._tagged_header: bytes | None = None
        self.repeats: dict[int, Repeats] = {}
        self._greeted_at = 0.0
        self._limit_name = "gateway.unauthenticated.request.max.bytes"
        self._request_max_bytes = self._settings.gateway_unauthenticated_request_max_bytes

    # ------------------------------------------------------------------- asyncio callbacks

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        peername = transport.get_extra_info("peername")
        self._peer = describe_peer(peername)
        self._host = compute_java_host(peername)
        self._advertised = compute_advertised(
            self._listener.endpoint, transport.get_extra_info("sockname")
        )
        self._heard_at = self._time()
        if not self._shared.idle.make_room(self._heard_at):
            self.refuse("too-many-connections", "max.connections is reached")
            return
        refusal = self._shared.admission.admit(self, self._host, self._listener)
        if refusal is not None:
            self.refuse(*refusal)
            return
        self._shared.connections.add(self)
        self._shared.on_connected(self)
        transport.set_write_buffer_limits(high=self._settings.gateway_response_buffer_bytes)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self.making.drop()
        self._shared.admission.leave(self)
        self._shared.connections.discard(self)
        self._shared.held.answers -= self._unsent
        self._unsent = 0
        self._arriving.drop()
        self._note_decoding(0)
        self.hold(0)
        queue, self.unanswered = self.unanswered, deque()
        for context in queue:
            try:
                context.abandon()
            except Exception:
                logger.exception("kafka_handler_failed peer=%s while abandoned", self._peer)
        if self.heartbeats.parked is not None:
            self.heartbeats.parked.drop()
        self._node.heartbeats.forget_all(self.heartbeats)
        self.repeats.clear()
        if self._node.front is not None:
            self._drop_links()

    def _drop_links(self) -> None:
        """Close what is open to the cluster for this client."""
        if self.passing is not None:
            self.passing.drop()
        if self.passed is not None:
            self.passed.close()
        self.passing = self.passed = None

    def pause_writing(self) -> None:
        self._stalled_since = self._time()
        self._update_reading()

    def resume_writing(self) -> None:
        self._stalled_since = None
        self._update_reading()
        if self._is_held:
            self._ask_for_a_turn()

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._time()
        arriving = self._arriving
        if arriving.have or self._is_held:
            arriving.add(data, self._heard_at)
            if arriving.have < arriving.need or self._is_held:
                self._shared.held.check_requests(self._heard_at)
                return
            data = arriving.take()
        elif self._serve_repeated(data):
            return
        self._serve(data, 0)

    def _serve_repeated(self, frame: bytes) -> bool:
        """Serve a frame that repeats an earlier request; ``False`` if it must be decoded."""
        if len(frame) <= FIXED_BYTES or self.heartbeats.parked is not None:
            return False
        repeats = self.repeats.get(frame[5])
        if repeats is None or len(self.unanswered) >= self._pipelined_max:
            return False
        times = self._shared.times
        times.left -= 1
        began_s = 0.0 if times.left else times.begin_repeat()
        answer = repeats.serve(self, frame, self._heard_at)
        if answer is None:
            return False
        if not isinstance(answer, bytes):
            answer.began_s = began_s
            self.unanswered.append(answer)
        elif answer:
            self._write(answer)
            if began_s:
                times.add_repeat(frame[5], began_s)
        return True

    # ------------------------------------------------------------------------------ frames

    def _serve(self, data: bytes, start: int) -> None:
        """Handle whole frames from ``start`` on, up to this iteration's limits; buffer the rest."""
        if self._is_first and len(data) >= 4 and not self._check_first_bytes(data):
            return
        out: list[bytes] = []
        self._out = out
        self._out_bytes = 0
        pos = self._serve_frames(data, start, out)
        self._out = None
        if self.transport is None:
            return
        if out:
            self.transport.write(out[0] if len(out) == 1 else b"".join(out))
            if self._out_bytes >= JOIN_LIMIT:
                self._note_answers()
        if pos > start:
            self._arriving.since = None
        if pos < len(data):
            self._arriving.keep(data, pos, self._time(), self._is_held)
            self._shared.held.check_requests(self._heard_at)
        if self._is_held:
            self._update_reading()
            self._ask_for_a_turn()

    def _serve_frames(self, data: bytes, pos: int, out: list[bytes]) -> int:
        """Handle frames until one is partial or has to wait; the position reached."""
        size = len(data)
        turns = self._shared.turns
        left = turns.requests if self._stalled_since is None else 0
        until = turns.now() + TURN_S
        most_bytes = self._settings.gateway_response_buffer_bytes
        heartbeats = self.heartbeats
        repeated = self.repeats
        while size - pos >= 4:
            if (
                not left
                or len(self.unanswered) >= self._pipelined_max
                or self._answer_bytes > most_bytes
            ):
                self._is_held = True
                break
            left -= 1
            end = pos + 4 + _SIZE.unpack_from(data, pos)[0]
            if end > size or end < pos + 4 + FIXED_BYTES:
                if not self._check_frame(end - pos - 4):
                    return size
                break
            if heartbeats.parked is not None:
                heartbeats.parked.end()
            if data[pos + 5] not in repeated or not self._serve_repeated(data[pos:end]):
                if not self._serve_request(data, pos + 4, end):
                    break
                if self._is_held or self._out_bytes > ANSWER_BYTES or turns.now() > until:
                    left = 0
            pos = end
        return pos

    def _check_first_bytes(self, data: bytes) -> bool:
        """Whether the first bytes may be Kafka's; refuse the connection otherwise."""
        self._is_first = False
        other = find_other_protocol(data)
        if other is not None:
            self.refuse(*other)
        return other is None

    def _check_frame(self, length: int) -> bool:
        """Whether this frame length is allowed; refuse the connection otherwise."""
        fault = find_length_fault(length, self._limit_name, self._request_max_bytes)
        if fault is not None:
            self.refuse("frame-length", fault)
        return fault is None

    # ---------------------------------------------------------------------------- requests

    def reopen(
        self, route: bytes, correlation: bytes, caller: Caller, raw: bytes
    ) -> RequestContext:
        found = self._shared.routes.find(route)
        assert found is not None
        context = RequestContext(
            self._node, self, found, correlation, caller, self._advertised, raw=raw
        )
        self.unanswered.append(context)
        return context

    def _serve_request(self, data: bytes, pos: int, end: int) -> bool:
        """Handle the request in ``data[pos:end]``; ``False`` if it must wait or nothing follows."""
        key = data[pos : pos + 4]
        route = self._routes.get(key) or self._shared.routes.find(key)
        if route is None:
            return self._refuse_api(data, pos)
        if self.making.must_wait(is_large=route.api.is_large, size=end - pos):
            self._is_held = True
            return False
        # A client sends the same client id in every request: compare with the last header first.
        header = self._tagged_header if route.header_tags else self._plain_header
        body_at = pos + FIXED_BYTES
        try:
            if header is not None and data.startswith(header, body_at, end):
                body_at += len(header)
            else:
                body_at = self._read_header(data, body_at, end, route.header_tags)
            long = route.decode_long
            if long is not None and end - body_at >= long.least_bytes:
                self._decode_long(route, data, pos, body_at, end)
                return self.transport is not None
            request = route.decode(data, body_at, end)
        except DecodeError as error:
            self.refuse("malformed", f"{route.api.name} v{route.version}: {error}")
            return False
        raw = data[pos + FIXED_BYTES : end] if route.api.is_repeated else b""
        self._handle(route, data[pos + 4 : pos + 8], request, raw)
        return self.transport is not None

    def _decode_long(self, route: Route, data: bytes, pos: int, body_at: int, end: int) -> None:
        """Decode a long request in time slices; hold the connection's next requests until then."""
        assert route.decode_long is not None
        correlation, caller = data[pos + 4 : pos + 8], self._caller

        def done(request: Any, error: Exception | None) -> None:
            if self.transport is None:
                return
            if error is not None:
                self.refuse("malformed", f"{route.api.name} v{route.version}: {error}")
                return
            self._caller = caller
            held = self._decoding_bytes
            self._note_decoding(0)
            if route.api.is_large:
                self.hold(held)
            if self.transport is not None:
                self._handle(route, correlation, request, b"", is_long=True)
            self._ask_for_a_turn()

        self._is_held = True
        self._note_decoding(end - pos)
        self._shared.held.check_requests(self._heard_at)
        steps = route.decode_long.read(data, body_at, end)
        work = decode_then(steps, lambda: self.closed, self._note_slice, done)
        self._node.slices.run(work, partial(done, None))

    def _note_slice(self) -> None:
        """Count the memory of one decoded slice: decoded elements take more than their bytes."""
        self._note_decoding(self._decoding_bytes + SLICE_BYTES)
        self._shared.held.check_requests(self._heard_at)

    def _note_decoding(self, size: int) -> None:
        """Set how many bytes the request being decoded holds; they count as request bytes."""
        self._shared.held.requests += size - self._decoding_bytes
        self._decoding_bytes = size

    def _handle(
        self, route: Route, correlation: bytes, request: Any, raw: bytes, *, is_long: bool = False
    ) -> None:
        # After one whole request the full frame limit applies: there is no authentication to wait
        # for.
        self._limit_name = "socket.request.max.bytes"
        self._request_max_bytes = self._settings.socket_request_max_bytes
        if self._greeted_at or route.api.key == API_VERSIONS_KEY:
            self._note_greeting(route.api.key == API_VERSIONS_KEY)
        context = RequestContext(
            self._node,
            self,
            route,
            correlation,
            self._caller,
            self._advertised,
            request=request,
            raw=raw,
            began_s=perf_counter(),
        )
        context.is_long |= is_long or len(raw) >= LEAST_BYTES
        self.unanswered.append(context)
        self.making.begin(context)
        try:
            route.api.handler(context, request)
        except Exception as error:  # noqa: BLE001 - one API's bug must not end the others
            self.fail(context, error)

    def _note_greeting(self, is_greeting: bool) -> None:
        """Measure a round trip: from the ApiVersions response to the client's next request."""
        if self._greeted_at:
            self.heartbeats.round_trip.begin((self._heard_at - self._greeted_at) * 1_000)
        self._greeted_at = self._time() if is_greeting else 0.0

    def _read_header(self, data: bytes, pos: int, end: int, header_tags: bool) -> int:
        """Read the header from the client id on; return the position of the body."""
        client_id, body_at = skip_header(data, pos, end, header_tags)
        try:
            self._caller = self._compute_caller(client_id.decode())
        except UnicodeDecodeError as error:
            raise DecodeError("the client id is not valid UTF-8") from error
        self._plain_header = data[pos : pos + 2 + len(client_id)]
        self._tagged_header = self._plain_header + b"\x00"
        return body_at

    def _compute_caller(self, client_id: str) -> Caller:
        identity, listener = self._identity, self._listener.endpoint.name
        return Caller(identity.principal, client_id, self._host, identity.groups, listener)

    def _refuse_api(self, data: bytes, pos: int) -> bool:
        """Answer an unserved version of ApiVersions; close on any other unserved request."""
        key, version, correlation = struct.unpack_from(">hh4s", data, pos)
        if key == API_VERSIONS_KEY:
            # KIP-511: answer in version 0, which every client can parse, with the served versions.
            route = self._shared.routes.find(b"\x00\x12\x00\x00")
            if route is not None:
                context = RequestContext(
                    self._node,
                    self,
                    route,
                    correlation,
                    self._compute_caller(""),
                    self._advertised,
                )
                self.unanswered.append(context)
                context.reply_failed(ErrorCode.UNSUPPORTED_VERSION, "")
                return True
        known = "unsupported version" if self._shared.routes.knows(key) else "unknown API key"
        self.refuse("unsupported", f"{known}: API key {key}, version {version}")
        return False
