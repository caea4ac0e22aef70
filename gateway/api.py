"""How an API of the Kafka wire is written: one file an API, one handler, one answer.

``gateway/apis/kNN_name.py`` (NN is the API key) holds one API. It opens with the versions served
and what is left out, defines ``handle(context, request)`` and ends with::

    API = Api(key=18, name="ApiVersions", versions=range(0, 5), handler=handle)

``gateway/apis/api_registry.py`` lists them all.

A handler gets the kio entity of the version asked for (``kio.schema.<api>.vN.request``); a field
that some served version lacks is read with ``getattr(request, "field", default)``. It calls
exactly one of the ``reply`` methods exactly once, before it returns or later on the loop; answers
leave a connection in the order of its requests whatever the order of the replies.

The answer is built from the *newest* version's kio response module, taken untyped::

    wire = response_schema(18)          # gateway.codec.kio_schema; the module of the newest version
    context.reply(wire.ApiVersionsResponse(throttle_time=0, error_code=0, ...))

It is encoded in the version of the request: fields that this version lacks are dropped, fields
that the newest version has lost take their default.

The fields have kio's names but hold plain values, both ways: milliseconds (int) for timedelta
and datetime, 16 bytes or ``None`` for a UUID, an int (``model.errors.ErrorCode`` is one) for an
error code, str, bytes, int, bool. Arrays are tuples in requests and any sequence in answers.

What a handler raises is a bug: it is logged, and the client gets what ``Api.failed`` makes of it,
or its connection is closed where there is no ``failed``. Errors for the client are part of the
response. A handler must not block.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from coordinator.runtime.api import Answer, Coordinator
from coordinator.runtime.authorizer import Authorizer, Operation, ResourceType
from coordinator.runtime.loop.slices import Slices, Steps
from gateway.making import Making
from gateway.pace.steady import ConnectionHeartbeats, MemberKey
from gateway.pending import Pending, Waiting
from gateway.settings import GatewaySettings
from gateway.topics.topic_catalogue import TopicCatalogue
from gateway.wire_clock import Clock
from model.commands import Caller, ClassicHeartbeat, Command, ConsumerGroupHeartbeat, SyncGroup
from model.errors import ErrorCode
from model.responses import SyncGroupResponse

T = TypeVar("T")

Handler: TypeAlias = Callable[["RequestContext", Any], None]
Failed: TypeAlias = Callable[["RequestContext", Any, ErrorCode, str], Any]
"""(context, request, code, message) -> the response entity that says so for the whole request."""


Decoder: TypeAlias = Callable[[bytes, int, int], Any]
"""(data, pos, end) -> the request in ``data[pos:end]``; raises
``gateway.codec.decoding.DecodeError``.
"""


class LongDecoder(NamedTuple):
    """Decodes bodies of ``least_bytes`` and more in slices, as a ``Decoder`` does at once."""

    least_bytes: int
    read: Callable[[bytes, int, int], Steps[Any]]


@dataclass(frozen=True, slots=True)
class Api:
    """One API: what is advertised, and what handles it.

    ``failed`` makes the response for an error of the whole request, such as a bug in the handler
    or a coordinator that is stopping; without it the connection is closed. ``decode`` is for the
    few whose requests are read by hand: (version, most array elements) -> a decoder, or ``None``
    for the common one; ``decode_long`` is for the longest of these. ``least_advertised`` is the
    first version that ApiVersions tells of, where that is not the first that is served.
    ``is_large``: the answer may be far larger than the request, or it takes many turns, so that a
    connection has one of them in the making at a time. ``is_repeated``: clients send the same
    request again and again, so that its handler is given its bytes (``RequestContext.raw``), and
    may leave with the connection what serves the next one (``Door.repeats``).
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
        """The first and the last version that ApiVersions tells of."""
        least = self.versions[0] if self.least_advertised is None else self.least_advertised
        return least, self.versions[-1]


@dataclass(frozen=True, slots=True)
class Route:
    """How to read a request of one API and version, and how its response is written.

    ``header_tags``: the header ends with tagged fields (header version 2). ``pack_head`` makes
    the size and header of a response out of its size and correlation id; the header takes
    ``head_size`` bytes, an empty tag section included where the version has one. ``decode_long`` is
    ``decode`` in slices; ``None`` where it is done by hand, in little time always.
    ``encode_long`` is ``encode`` in slices.
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
    """Heartbeats and syncs of classic members (``gateway.heartbeats.classic_heartbeats``)."""

    def submit(
        self, context: RequestContext, command: ClassicHeartbeat, answer: Callable[[Answer], None]
    ) -> None:
        """Submit a heartbeat; ``answer`` is called with what is to be said, perhaps much later."""

    def answer_sync(
        self,
        context: RequestContext,
        command: SyncGroup,
        found: SyncGroupResponse,
        answer: Callable[[Answer], None],
    ) -> None:
        """``answer`` the member what was found, perhaps later."""


class HeartbeatHandler(Protocol):
    """Heartbeats of all connections of a server (``gateway.heartbeats.heartbeats``)."""

    @property
    def classic(self) -> ClassicHeartbeatHandler:
        """Those of classic members."""

    def submit(self, context: RequestContext, command: ConsumerGroupHeartbeat) -> None:
        """Submit a heartbeat and answer it, now or later."""

    def forget(self, connection: ConnectionHeartbeats, key: MemberKey) -> None:
        """The member has left, or is none."""

    def forget_all(self, connection: ConnectionHeartbeats) -> None:
        """The connection is gone."""


@dataclass(frozen=True, slots=True)
class GatewayNode:
    """What all connections of one server share."""

    coordinator: Coordinator
    authorizer: Authorizer
    topics: TopicCatalogue
    settings: GatewaySettings
    clock: Clock
    heartbeats: HeartbeatHandler
    slices: Slices
    apis: tuple[Api, ...]
    allows_all: bool = False
    """There is no access control: the authorizer need not be asked."""


class Repeats(Protocol):
    """What is kept of the requests of one API, so that those that repeat one cost little."""

    def serve(self, door: Door, frame: bytes, now: float) -> bytes | Pending | None:
        """Serve what came at ``now`` in seconds; ``None``, and nothing done, where it cannot.

        It cannot where ``frame`` is anything but one whole frame that repeats what is kept. The
        answer is a whole frame too, empty where it is given later or was given to the door.
        """


class Door(Protocol):
    """The connection that a request came by, as its context needs it.

    ``repeats`` is by the key of the API.
    """

    heartbeats: ConnectionHeartbeats
    making: Making
    repeats: dict[int, Repeats]

    @property
    def unanswered(self) -> Collection[RequestContext | Pending]:
        """The requests whose answers others wait for, in their order."""

    @property
    def closed(self) -> bool:
        """Whether the connection is gone."""

    def is_latest(self, context: RequestContext) -> bool:
        """Whether no request has come after this one, which must then not wait."""

    def deliver(self, context: RequestContext, body: bytes | None) -> None:
        """Take the encoded body of the answer; ``None`` where nothing is sent."""

    def fail(self, context: RequestContext, error: BaseException) -> None:
        """A handler or its callback raised: log it and answer, or close."""

    def hold(self, size: int) -> None:
        """The large request that is in the making takes so many bytes until it is answered.

        They count in ``queued.max.request.bytes``, which may close the connection.
        """

    def close(self) -> None:
        """Close after what was answered is sent; requests that wait are abandoned."""

    def send(self, frame: bytes) -> None:
        """Send a whole answer, to a request that has no context; no answer is owed before it."""

    def send_answered(self) -> None:
        """Send the answers that no other has to go before."""

    def reopen(
        self, route: bytes, correlation: bytes, caller: Caller, raw: bytes
    ) -> RequestContext:
        """A context for a repeated request, whose answer takes its place after all before it.

        ``route`` is its key and version.
        """


class RequestContext(Waiting):
    """One request: who asks, in which version, and where the answer goes.

    ``advertised`` is the (host, port) that this client is told for this node. ``principal`` and
    the rest of who asks are in ``caller``. ``raw`` is the request from its client id on,
    kept for APIs that are ``is_repeated`` alone. ``is_long``: the request is of so many bytes that
    it was decoded in slices, and so its answer is encoded.
    """

    __slots__ = (
        "advertised",
        "body",
        "caller",
        "correlation",
        "door",
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
        door: Door,
        route: Route,
        correlation: bytes,
        caller: Caller,
        advertised: tuple[str, int],
        *,
        request: Any = None,
        raw: bytes = b"",
    ) -> None:
        self.node = node
        self.door = door
        self.route = route
        self.version = route.version
        self.correlation = correlation
        self.caller = caller
        self.advertised = advertised
        self.request = request
        self.raw = raw
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
        """Whether the connection is gone, so that nobody waits for the answer."""
        return self.door.closed

    def authorized(
        self, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        """Whether the caller may do ``operation`` there."""
        node, caller = self.node, self.caller
        return node.allows_all or node.authorizer.authorize(
            caller.principal, caller.client_host, operation, resource_type, resource_name
        )

    def reply(self, response: Any) -> None:
        """Answer with a response entity of the newest version, or with its bytes; never raises."""
        try:
            if self.is_long and type(response) is not bytes:
                steps = self.route.encode_long(response)
                self.run_slices(steps, partial(self.door.deliver, self))
                return
            body = response if type(response) is bytes else self.route.encode(response)
        except Exception as error:  # noqa: BLE001 - a bug in one API must not reach the runtime
            self.door.fail(self, error)
            return
        self.door.deliver(self, body)

    def reply_encoded(self, body: bytes) -> None:
        """Answer with a body that is encoded already."""
        self.door.deliver(self, body)

    def reply_nothing(self) -> None:
        """End the request without an answer (Produce with acks 0)."""
        self.door.deliver(self, None)

    def reply_failed(self, code: ErrorCode, message: str) -> None:
        """Answer with an error for the whole request, as ``Api.failed`` puts it."""
        if self.api.failed is None:
            self.door.fail(self, RuntimeError(f"{code.name}: {message}"))
            return
        self.reply(self.api.failed(self, self.request, code, message))

    def run_slices(self, steps: Steps[T], done: Callable[[T], object]) -> None:
        """Work in slices: the first now, the others in turns that others share.

        ``done`` gets what ``steps`` come to; nothing more is done once the connection is gone.
        """
        work = self._run(steps, done)
        for _ in work:
            self.door.making.go_on(self)
            self.node.slices.go_on(work, partial(self.door.fail, self))
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
            self.door.fail(self, error)

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        """Submit a command; ``on_answer`` gets its answer and replies.

        What ``on_answer`` raises is a bug of this API and is answered as one; the runtime that
        calls it never sees it.
        """
        door = self.door

        def guarded(answer: Answer) -> None:
            try:
                on_answer(answer)
            except Exception as error:  # noqa: BLE001 - the runtime must not see a door's bug
                door.fail(self, error)

        self.node.coordinator.submit(command, guarded)

    def submit_waiting(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        """``submit`` what waits for other members; NOT_COORDINATOR if the server stops before.

        So Kafka's coordinator answers when it resigns: they all join again where they find the
        next one. An answer that comes later is not for them.
        """

        def unless_refused(answer: Answer) -> None:
            if not self.answered:
                self.keep()
                on_answer(answer)

        self.on_drain(
            lambda: self.reply_failed(ErrorCode.NOT_COORDINATOR, "The coordinator is stopping.")
        )
        self.submit(command, unless_refused)
