"""A connection to a server: one channel and one session stream for all members that use it."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias, TypeVar

import grpc
import grpc.aio

from muster.connection.lease import read_clock
from muster.connection.stream import FINISH_S, Stream
from muster.connection.stream_members import ClosedMember, StreamMember
from muster.connection.unary import ask, describe_trouble
from muster.errors import MemberLost, MusterError
from muster.v1 import (
    admin_pb2,
    admin_pb2_grpc,
    classic_pb2_grpc,
    group_pb2,
    group_pb2_grpc,
    types_pb2,
)

T = TypeVar("T")

_LOG = logging.getLogger("muster")
_BACKOFF_MIN_S: Final = 0.05
_BACKOFF_MAX_S: Final = 2.0
_SILENCE_MIN_S: Final = 1.0
_SILENCE_DEFAULT_S: Final = 15.0
_LOOK_DELAY_S: Final = 1.0
_LOOK_TIMEOUT_S: Final = 1.0
_SETTLE_S: Final = 0.01
_SECOND_LOOK_S: Final = 0.1
"""How long what has come may lie unread where the event loop was blocked."""
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_http_proxy", 0),
    # What never left is tried again by gRPC without a limit and within one call: where a connection
    # breaks in the wrong moment that call never returns, and takes all memory. Muster tries again.
    ("grpc.enable_retries", 0),
    # Probing for bandwidth would double the cost of small messages, here and at the server.
    ("grpc.http2.bdp_probe", 0),
    # Each client is one connection of its own, also where two go to the same place.
    ("grpc.use_local_subchannel_pool", 1),
)


class Client:
    """A connection to ``target`` (``host:port``); members that share it share one stream.

    Make it on the event loop that its members live on. ``credentials`` are for TLS, ``options``
    are gRPC channel arguments.
    """

    def __init__(
        self,
        target: str,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        options: Sequence[tuple[str, int | str]] = (),
    ) -> None:
        self.target = target
        self._credentials = credentials
        self._options = (*_OPTIONS, *options)
        self._channel = self._open_channel()
        self._make_stubs()
        self._members: dict[tuple[str, str], StreamMember] = {}
        self._watchers: dict[ClosedMember, None] = {}
        self._commits: dict[int, asyncio.Future[group_pb2.CommitResult | None]] = {}
        self._correlation_ids = itertools.count(1)
        self._loop = asyncio.get_running_loop()
        self._stream: Stream | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._silence_s = _SILENCE_DEFAULT_S
        self._is_silent = False
        self._doubted_since: float | None = None
        self._is_begun_anew = False
        self._is_closed = False
        self._is_finished = False
        self._last_error = "it did not answer"

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connection. Members still on it leave, and are told so (``MemberLost``)."""
        self._is_closed = True
        for member in (*self._members.values(), *self._watchers):
            self._tell(member, partial(member.leave_at_once, MemberLost("the client was closed")))
        if self._members and self._stream is not None:
            self._stream.finish()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            if self._stream is not None and self._stream.is_ending:
                # What its last member has said goes out yet.
                await asyncio.wait((self._task,), timeout=FINISH_S)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self._channel.close(None)
        # grpc.aio tells the loop a moment later of what was under way; a loop that has ended by
        # then has the next one print tracebacks.
        await asyncio.sleep(_SETTLE_S)

    # ------------------------------------------------------------------------ used by members

    @property
    def trouble(self) -> str:
        """Why the server cannot be reached, for people."""
        return self._last_error

    @property
    def is_restarting(self) -> bool:
        """Whether somebody has cancelled the stream under its members: another one is to come."""
        if self._task is None or self._is_closed:
            return False
        return self._is_begun_anew or self._task.cancelling() > 0

    def check_open(self) -> None:
        """Raises ``MemberLost`` when it was closed."""
        if self._is_closed:
            raise MemberLost("the client was closed")

    def enter(self, member: StreamMember) -> None:
        """The member joins on the stream there is, or on the next one."""
        key = (member.group_id, member.member_id)
        self.check_open()
        if key in self._members:
            raise MusterError(f"this client has a member {member.member_id!r} of the group already")
        self._members[key] = member
        if self._stream is not None and not self._stream.is_ending:
            member.on_stream(self._stream)
        if self._task is None or self._task.done():
            self._begin()

    def resume(self) -> None:
        """A member is to leave; its stream was cancelled where ``asyncio.run`` ends."""
        if self._task is not None and self._task.cancelled():
            self._begin_anew()

    def leave(self, member: StreamMember) -> None:
        """The member is done; without members the stream ends."""
        key = (member.group_id, member.member_id)
        if self._members.get(key) is member:
            del self._members[key]
        if not self._members and self._stream is not None:
            self._stream.finish()

    def watch(self, member: ClosedMember) -> None:
        """Of members that are on no stream: they are told when the client is closed."""
        self.check_open()
        self._watchers[member] = None

    def unwatch(self, member: ClosedMember) -> None:
        """The member is done."""
        self._watchers.pop(member, None)

    def rename(self, old_member_id: str, member: StreamMember) -> None:
        """The member has another id now."""
        self._members.pop((member.group_id, old_member_id), None)
        self._members[(member.group_id, member.member_id)] = member

    async def commit(
        self, member: StreamMember, member_epoch: int, topics: Sequence[types_pb2.TopicOffsets]
    ) -> group_pb2.CommitResult | None:
        """Commits on the stream; ``None`` where the stream broke before the answer."""
        if self._stream is None:
            return None
        correlation_id = next(self._correlation_ids)
        answer: asyncio.Future[group_pb2.CommitResult | None] = self._loop.create_future()
        self._commits[correlation_id] = answer
        commit = group_pb2.Commit(
            correlation_id=correlation_id,
            member_epoch=member_epoch,
            topics=topics,
        )
        self._stream.send(
            group_pb2.MemberAction(
                group_id=member.group_id, member_id=member.member_id, commit=commit
            )
        )
        try:
            return await answer
        finally:
            self._commits.pop(correlation_id, None)

    async def replace_silent(self, classic: classic_pb2_grpc.ClassicServiceStub) -> None:
        """Calls over this stub were not answered: their connection may be dead without a word.

        Where members are on a stream, its silence tells.
        """
        if classic is self.classic and not self._members and not self._is_closed:
            await self._replace_channel()

    def expect(self, heartbeat_interval_ms: int) -> None:
        """The server promised a sign of life at least so often."""
        self._silence_s = max(_SILENCE_MIN_S, 3 * heartbeat_interval_ms / 1000)
        self.arm(read_clock() + self._silence_s)

    def arm(self, deadline: float) -> None:
        """Looks at leases no later than that."""
        delay = max(0.0, deadline - read_clock())
        if self._timer is None or self._timer.when() > self._loop.time() + delay:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_later(delay, self._on_timer)

    # ------------------------------------------------------------------------------- internal

    def _open_channel(self) -> grpc.aio.Channel:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self.target, options=self._options)
        return grpc.aio.secure_channel(self.target, self._credentials, options=self._options)

    def _make_stubs(self) -> None:
        self.stub = group_pb2_grpc.GroupServiceStub(self._channel)
        self.classic = classic_pb2_grpc.ClassicServiceStub(self._channel)
        self.admin = admin_pb2_grpc.AdminServiceStub(self._channel)

    async def _replace_channel(self) -> None:
        """A connection whose other end is gone without a word looks well: begin a new one."""
        old, self._channel = self._channel, self._open_channel()
        self._make_stubs()
        await old.close(None)

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._run())
        self._task.add_done_callback(self._on_run_ended)

    def _on_run_ended(self, task: asyncio.Task[None]) -> None:
        """``asyncio.run`` cancels all tasks as it ends; members that give up then need a stream.

        Of the others nobody speaks any more: no task is left behind for them.
        """
        leaving = any(member.is_leaving for member in self._members.values())
        if task.cancelled() and leaving:
            self._begin_anew()

    def _begin_anew(self) -> None:
        if not self._is_closed:
            self._is_begun_anew = True
            self._begin()

    async def _run(self) -> None:
        backoff_s = _BACKOFF_MIN_S
        while self._members and not self._is_closed:
            served_s = await self._open_and_serve()
            if not self._members or self._is_closed:
                return
            if self._is_finished:
                # The last member has left, and another one has come since.
                self._is_finished = False
                backoff_s = _BACKOFF_MIN_S
                continue
            backoff_s = min(2 * backoff_s, _BACKOFF_MAX_S)
            if served_s > _BACKOFF_MAX_S:
                # It served for a while: one that fails again and again must not be rushed.
                backoff_s = _BACKOFF_MIN_S
            await self._back_off(backoff_s)

    async def _back_off(self, backoff_s: float) -> None:
        await asyncio.sleep(backoff_s * random.uniform(0.5, 1.0))

    async def _open_and_serve(self) -> float:
        """Serves the members until the stream ends, whyever; for how many seconds it was heard."""
        opened_at = heard_at = read_clock()
        try:
            if self._is_silent:
                self._is_silent = False
                await self._replace_channel()
            await self._wait_until_ready()
            stream = Stream(self.stub.Session(None), self._receive)
            opened_at = stream.received_at
            try:
                await self._serve(stream)
            finally:
                heard_at = stream.received_at
                self._is_finished = stream.is_finished
        except grpc.aio.AioRpcError as error:
            self._last_error = describe_trouble(error)
            _LOG.info("session_lost target=%s cause=%s", self.target, self._last_error)
        except Exception as error:  # noqa: BLE001 - all members need the next stream
            cause = f"{type(error).__name__}: {error}"
            if cause != self._last_error:
                _LOG.error("session_failed target=%s", self.target, exc_info=error)
            self._last_error = cause
        return heard_at - opened_at

    async def _wait_until_ready(self) -> None:
        """Returns when there is a connection; until then looks from time to time why not."""
        ready = asyncio.ensure_future(self._channel.channel_ready())
        try:
            while not ready.done():
                await asyncio.wait((ready,), timeout=_LOOK_DELAY_S)
                if not ready.done():
                    self._last_error = await self._find_trouble()
            await ready
        finally:
            ready.cancel()

    async def _find_trouble(self) -> str:
        """Asks something, only to hear why that cannot be asked."""
        request = admin_pb2.ListTopicsRequest(page_size=1)
        try:
            await ask(self.admin.ListTopics, request, timeout=_LOOK_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            return describe_trouble(error)
        return self._last_error

    async def _serve(self, stream: Stream) -> None:
        self._stream = stream
        self._is_begun_anew = False
        self.arm(read_clock() + self._silence_s)
        try:
            for member in tuple(self._members.values()):
                self._tell(member, partial(member.on_stream, stream))
            await stream.run()
        finally:
            self._stream = None
            for member in tuple(self._members.values()):
                self._tell(member, partial(member.on_stream_lost, stream))
            for answer in self._commits.values():
                if not answer.done():
                    answer.set_result(None)

    def _tell(self, member: StreamMember | ClosedMember, call: Callable[[], T]) -> T | None:
        """What one member raises ends that member; the others are told all the same."""
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - raised where its application looks
            _LOG.error("member_failed group=%s", member.group_id, exc_info=error)
            failure = MusterError(f"the member failed: {type(error).__name__}: {error}")
            failure.__cause__ = error
            self._loop.call_soon(member.leave_at_once, failure)
            return None

    def _receive(self, response: group_pb2.SessionResponse) -> None:
        stream = self._stream
        assert stream is not None
        for update in response.updates:
            if update.HasField("commit_result"):
                answer = self._commits.get(update.commit_result.correlation_id)
                if answer is not None and not answer.done():
                    answer.set_result(update.commit_result)
                continue
            member = self._members.get((update.group_id, update.member_id))
            if member is not None:
                self._tell(member, partial(member.on_update, update, stream))

    def _on_timer(self) -> None:
        """Leases end by our own clock, and a server that is silent is given up."""
        self._timer = None
        now = read_clock()
        deadlines = []
        for member in tuple(self._members.values()):
            deadline = self._tell(member, partial(member.check_lease, now))
            if deadline is not None:
                deadlines.append(deadline)
        stream = self._stream
        if stream is not None:
            silent_at = stream.received_at + self._silence_s
            if silent_at > now:
                deadlines.append(silent_at)
            elif self._doubted_since != stream.received_at:
                # A loop that was blocked has not read what has come.
                self._doubted_since = stream.received_at
                deadlines.append(now + _SECOND_LOOK_S)
            else:
                self._last_error = "it fell silent"
                self._is_silent = True
                stream.shut()
        if deadlines:
            self.arm(min(deadlines))


_Place: TypeAlias = tuple[asyncio.AbstractEventLoop, str, int]
"""Whose loop, to where, and which of them."""
_SHARED: Final[dict[_Place, tuple[Client, int]]] = {}
CALLERS_MAX: Final = 40
"""Classic members on one shared client: each waits in a call and has others beside it, and a
connection has 100 at a time."""


def acquire_shared_client(target: str, users_max: int | None = None) -> Client:
    """The client that members of this event loop share for a target; release it once.

    With ``users_max`` no more than so many share one, and not with those that say nothing.
    """
    for ended in [place for place in _SHARED if place[0].is_closed()]:
        del _SHARED[ended]
    number = 0
    if users_max is not None:
        number = 1
        while _SHARED.get(_place_of(target, number), (None, 0))[1] >= users_max:
            number += 1
    place = _place_of(target, number)
    client, users = _SHARED.get(place) or (Client(target), 0)
    _SHARED[place] = (client, users + 1)
    return client


def _place_of(target: str, number: int) -> _Place:
    return asyncio.get_running_loop(), target, number


async def release_shared_client(client: Client) -> None:
    """The last to release it closes it."""
    [place] = [place for place, (shared, _) in _SHARED.items() if shared is client]
    users = _SHARED[place][1]
    if users > 1:
        _SHARED[place] = (client, users - 1)
        return
    del _SHARED[place]
    await client.close()
