"""The contract between a connection and a Kafka API: ``Api`` and ``RequestContext``.

``gateway/apis/<subject>/kNN_name.py`` (NN is the API key) implements one API. Its docstring lists
the versions served and what is left out; it defines ``handle(context, request)`` and ends with::

    API = Api(key=18, name="ApiVersions", versions=range(0, 5), handler=handle)

``gateway/apis/api_registry.py`` lists all APIs.

A handler receives the kio entity of the request's version (``kio.schema.<api>.vN.request``), or
what ``Api.decode`` returns; it reads a field that some served version lacks with
``getattr(request, "field", default)``. It calls exactly one ``reply`` method exactly once, before
it returns or later on the loop. Responses leave in request order, whatever the order of replies.

The response is built from the *newest* version's kio response module, used untyped::

    wire = response_schema(18)          # gateway.codec.kio_schema; the module of the newest version
    context.reply(wire.ApiVersionsResponse(throttle_time=0, error_code=0, ...))

It is encoded in the request's version: fields that this version lacks are dropped, and fields that
the newest version no longer has take their default.

Fields have kio's names but hold plain values both ways: int milliseconds for timedelta and
datetime, 16 bytes or ``None`` for a UUID, an int for an error code, str, bytes, int, bool. Arrays
are tuples in requests and any sequence in responses.

An exception from a handler is a bug: it is logged, and the client gets the response of
``Api.failed``, or the connection is closed. Errors for the client are responses. Never block.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from coordinator.runtime.api import Answer, Coordinator
from coordinator.runtime.authorizer import Authorizer
from coordinator.runtime.loop.slices import RunsSlices, Steps
from gateway.fronting.front import Front, PassedClient
from gateway.fronting.passing import Passing
from gateway.making import Making
from gateway.pace.cached_heartbeat import ConnectionHeartbeats, MemberKey
from gateway.pending import Pending, Waiting
from gateway.sasl.exchange import SaslExchange
from gateway.settings import GatewaySettings
from gateway.topics.topic_catalogue import TopicCatalogue
from gateway.wire_clock import Clock
from model.access.acls import Operation, ResourceType
from model.caller import Caller
from model.commands.classic import ClassicHeartbeat, SyncGroup
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupHeartbeat
from model.errors import ErrorCode
from model.responses.classic import SyncGroupResponse

T = TypeVar("T")

Handler: TypeAlias = Callable[["RequestContext", Any], None]
Failed: TypeAlias = Callable[["RequestContext", Any, ErrorCode, str], Any]
"""(context, request, code, message) -> the response that fails the whole request."""

Decoder: TypeAlias = Callable[[bytes, int, int], Any]
"""(data, pos, end) -> the request in ``data[pos:end]``; raises ``DecodeError``."""


class LongDecoder(NamedTuple):
    """A ``Decoder`` that works in time slices, for bodies of ``least_bytes`` or more."""

    least_bytes: int
    read: Callable[[bytes, int, int], Steps[Any]]


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its key, its versions, its handler, and how a connection must treat it.

    ``failed`` builds the response that fails the whole request, for example when the handler has a
    bug or the coordinator is stopping; without it the connection is closed. ``decode`` is for the
    few APIs with a hand-written decoder: (version, max array elements) -> a decoder, or ``None``
    for the generic one; ``decode_long`` is its counterpart for long requests. ``least_advertised``
    is the lowest version in ApiVersions, where that is not the lowest served. ``is_large``: the
    response may be far larger than the request or take many iterations, so a connection processes
    one such request at a time. ``is_repeated``: clients send the same bytes over and over; the
    handler gets them (``RequestContext.raw``) and may register what answers the next one
    (``ClientConnection.repeats``).
    """

    key: int
    name: str
    versions: range
    handler: Handler
    failed: Failed | None = None
    decode: Callable[[int, int], Decoder | None] | None = None
    decode_long: Callable[[int, int], LongDecoder] | None = None
    least_advertised: int | None = None
    is_large: bool = False
    is_repeated: bool = False

    @property
    def advertised(self) -> tuple[int, int]:
        """The lowest and the highest version in ApiVersions."""
        least = self.versions[0] if self.least_advertised is None else self.least_advertised
        return least, self.versions[-1]


@dataclass(frozen=True, slots=True)
class Route:
    """How to decode a request of one API and version, and how to encode its response.

    ``header_tags``: the request header ends with tagged fields (header version 2). ``pack_head``
    packs a response's size and header from the size and the correlation id; the header has
    ``head_size`` bytes, including the empty tag section if the version has one. ``decode_long`` is
    ``decode`` in time slices; ``None`` for a hand-written decoder that is always quick.
    ``encode_long`` is ``encode`` in time slices.
    """

    api: Api
    version: int
    header_tags: bool
    head_size: int
    pack_head: Callable[[int, bytes], bytes]
    decode: Decoder
    decode_long: LongDecoder | None
    encode: Callable[[Any], bytes]
    encode_long: Callable[[Any], Steps[bytes]]


class ClassicHeartbeatHandler(Protocol):
    """Heartbeat and SyncGroup of classic members (``gateway.heartbeats.classic_heartbeats``)."""

    def submit(
        self, context: RequestContext, command: ClassicHeartbeat, answer: Callable[[Answer], None]
    ) -> None:
        """Submit a heartbeat; ``answer`` receives the result, possibly much later."""

    def answer_sync(
        self,
        context: RequestContext,
        command: SyncGroup,
        found: SyncGroupResponse,
        answer: Callable[[Answer], None],
    ) -> None:
        """Pass ``found`` to ``answer``, or, after parking, what the member has to hear instead."""


class HeartbeatHandler(Protocol):
    """Heartbeats of all connections of a listener (``gateway.heartbeats.heartbeats``)."""

    @property
    def classic(self) -> ClassicHeartbeatHandler:
        """The handler for classic members."""

    def submit(self, context: RequestContext, command: ConsumerGroupHeartbeat) -> None:
        """Submit a heartbeat and answer it, now or later."""

    def forget(self, connection: ConnectionHeartbeats, key: MemberKey) -> None:
        """Drop a member that has left or that the group does not know."""

    def forget_all(self, connection: ConnectionHeartbeats) -> None:
        """Drop every member of a closed connection."""


@dataclass(frozen=True, slots=True)
class GatewayNode:
    """What all connections of one listener share."""

    coordinator: Coordinator
    authorizer: Authorizer
    topics: TopicCatalogue
    settings: GatewaySettings
    clock: Clock
    heartbeats: HeartbeatHandler
    slices: RunsSlices
    apis: tuple[Api, ...]
    allows_all: bool = False
    """Whether there is no access control, so that checks can skip the authorizer."""
    front: Front | None = None


class Repeats(Protocol):
    """Answers requests of one API that repeat an earlier one, without decoding them."""

    def serve(self, client: ClientConnection, frame: bytes, now: float) -> bytes | Pending | None:
        """Serve a frame that arrived at ``now`` seconds; ``None``, without effect, if it cannot.

        It serves only one whole frame that repeats a cached request. The result is the response
        frame, empty if the response follows later or was already passed to ``client``.
        """


class ClientConnection(PassedClient, Protocol):
    """The connection that a request arrived on, as its context sees it.

    ``repeats`` is keyed by API key. ``sasl`` is how it authenticates, ``None`` if it does not.
    ``passing`` passes its requests on to a cluster, over ``passed`` if its login was.
    """

    heartbeats: ConnectionHeartbeats
    making: Making
    repeats: dict[int, Repeats]
    sasl: SaslExchange | None
    passing: Passing | None

    @property
    def unanswered(self) -> Collection[RequestContext | Pending]:
        """The requests that are not answered yet or whose response is not sent, in order."""

    def is_latest(self, context: RequestContext) -> bool:
        """Whether this is the last request so far: one with others behind it must not be parked."""

    def deliver(self, context: RequestContext, body: bytes | None) -> None:
        """Accept the encoded response body; ``None`` to send no response."""

    def fail(self, context: RequestContext, error: BaseException) -> None:
        """Log an exception of a handler or callback, and answer with an error or close."""

    def hold(self, size: int) -> None:
        """Set how many bytes the large request in progress holds until it is answered.

        They count against ``queued.max.request.bytes``; over that, a connection is closed.
        """

    def send(self, frame: bytes) -> None:
        """Send a response frame for a request without a context; no response may be due first."""

    def send_answered(self) -> None:
        """Send the responses at the head of the queue, up to the first unanswered request."""

    def reopen(
        self, route: bytes, correlation: bytes, caller: Caller, raw: bytes
    ) -> RequestContext:
        """Queue a context for a repeated request of ``route``, its API key and version."""


class RequestContext(Waiting):
    """One request: its caller, its version, and the connection to answer on.

    ``advertised`` is the (host, port) of this node to return to this client. ``raw`` is the request
    from the client id on, for APIs with ``is_repeated``. ``is_long``: it is answered in slices.
    ``began_s`` is when it was taken up (``perf_counter``), 0 if it is not timed.
    """

    __slots__ = (
        "advertised",
        "began_s",
        "body",
        "caller",
        "client",
        "correlation",
        "is_long",
        "node",
        "raw",
        "request",
        "route",
        "version",
    )

    def __init__(
        self,
        node: GatewayNode,
        client: ClientConnection,
        route: Route,
        correlation: bytes,
        caller: Caller,
        advertised: tuple[str, int],
        *,
        request: Any = None,
        raw: bytes = b"",
        began_s: float = 0.0,
    ) -> None:
        self.node = node
        self.client = client
        self.route = route
        self.version = route.version
        self.correlation = correlation
        self.caller = caller
        self.advertised = advertised
        self.request = request
        self.raw = raw
        self.began_s = began_s
        self.is_long = route.api.is_large
        self.answered = False
        self.body: bytes | None = None
        self._abandoned = self._drained = None

    @property
    def api(self) -> Api:
        """The API of the request."""
        return self.route.api

    @property
    def is_large(self) -> bool:
        """Whether its API is ``is_large``."""
        return self.route.api.is_large

    @property
    def correlation_id(self) -> int:
        """The correlation id of the request."""
        return int.from_bytes(self.correlation, "big", signed=True)

    @property
    def closed(self) -> bool:
        """Whether the connection is gone, so that no client waits for the response."""
        return self.client.closed

    def authorized(
        self, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        """Whether the caller may perform ``operation`` on the resource."""
        node = self.node
        return node.allows_all or node.authorizer.authorize(
            self.caller, operation, resource_type, resource_name
        )

    def reply(self, response: Any) -> None:
        """Reply with a response entity of the newest version, or an encoded body; never raises."""
        try:
            if self.is_long and type(response) is not bytes:
                steps = self.route.encode_long(response)
                self.run_slices(steps, partial(self.client.deliver, self))
                return
            body = response if type(response) is bytes else self.route.encode(response)
        except Exception as error:  # noqa: BLE001 - a bug in one API must not reach the runtime
            self.client.fail(self, error)
            return
        self.client.deliver(self, body)

    def reply_encoded(self, body: bytes) -> None:
        """Reply with an encoded body."""
        self.client.deliver(self, body)

    def reply_nothing(self) -> None:
        """End the request without a response (Produce with acks 0)."""
        self.client.deliver(self, None)

    def reply_failed(self, code: ErrorCode, message: str) -> None:
        """Fail the whole request with the response of ``Api.failed``."""
        if self.api.failed is None:
            self.client.fail(self, RuntimeError(f"{code.name}: {message}"))
            return
        self.reply(self.api.failed(self, self.request, code, message))

    def run_slices(self, steps: Steps[T], done: Callable[[T], object]) -> None:
        """Run ``steps`` in time slices: the first now, the rest in later, shared iterations.

        ``done`` receives the result. The work stops when the connection is gone.
        """
        work = self._run(steps, done)
        for _ in work:
            self.client.making.go_on(self)
            self.node.slices.go_on(work, partial(self.client.fail, self))
            return

    def _run(self, steps: Steps[T], done: Callable[[T], object]) -> Steps[None]:
        try:
            while not self.closed:
                try:
                    next(steps)
                except StopIteration as end:
                    done(end.value)
                    return
                yield
        except Exception as error:  # noqa: BLE001 - a bug in one API ends this request alone
            self.client.fail(self, error)

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        """Submit a command; ``on_answer`` replies. The runtime never sees an exception of it."""
        client = self.client

        def guarded(answer: Answer) -> None:
            try:
                on_answer(answer)
            except Exception as error:  # noqa: BLE001 - the runtime must not see an API's bug
                client.fail(self, error)

        self.node.coordinator.submit(command, guarded)

    def submit_waiting(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        """Submit a command that waits for other members; NOT_COORDINATOR if the server stops.

        Kafka's coordinator answers the same when it resigns, and members rejoin at the next one.
        An answer of the coordinator after that is dropped.
        """

        def unless_refused(answer: Answer) -> None:
            if not self.answered:
                self.keep()
                on_answer(answer)

        self.on_drain(
            lambda: self.reply_failed(ErrorCode.NOT_COORDINATOR, "The coordinator is stopping.")
        )
        self.submit(command, unless_refused)
