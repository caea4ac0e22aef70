"""A connection to a server: one channel and one session stream for all members that use it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import grpc
import grpc.aio

from muster.connection.authorization import Authorization, TokenUnavailable
from muster.connection.channel import ServerChannel
from muster.connection.end_reports import report_end_offsets
from muster.connection.lease import read_clock
from muster.connection.silence import SilenceWatch
from muster.connection.stream import FINISH_S, Stream
from muster.connection.stream_commits import StreamCommits
from muster.connection.stream_credentials import StreamCredentials
from muster.connection.stream_members import ClosedMember, StreamMember
from muster.connection.unary import describe_trouble, says_nothing
from muster.credentials import Credentials, Tls, check_access
from muster.errors import AuthenticationFailed, MemberLost, MusterError
from muster.partitions import TopicPartition
from muster.v1 import admin_pb2_grpc, classic_pb2_grpc, group_pb2, group_pb2_grpc, types_pb2

T = TypeVar("T")

_LOG = logging.getLogger("muster")
_BACKOFF_MIN_S: Final = 0.05
_BACKOFF_MAX_S: Final = 2.0


class Client:
    """A connection to ``target`` (``host:port``); members that share it share one stream.

    Create it on the event loop that its members run on. ``tls`` and ``credentials`` are as in
    ``Member``; ``options`` are gRPC channel arguments.
    """

    def __init__(
        self,
        target: str,
        *,
        tls: Tls | None = None,
        credentials: Credentials | None = None,
        options: Sequence[tuple[str, int | str]] = (),
    ) -> None:
        self.target = target
        check_access(target, tls, credentials)
        authorization = None if credentials is None else Authorization(credentials, self._move)
        self._credentials = StreamCredentials(authorization)
        self._channel = ServerChannel(target, tls, authorization, options)
        self._members: dict[tuple[str, str], StreamMember] = {}
        self._watchers: dict[ClosedMember, None] = {}
        self._commits = StreamCommits()
        self._silence = SilenceWatch()
        self._loop = asyncio.get_running_loop()
        self._stream: Stream | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_begun_anew = False
        self._is_closed = False
        self._is_finished = False

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection. Members that still use it leave and fail with ``MemberLost``."""
        self._is_closed = True
        for member in (*self._members.values(), *self._watchers):
            self._call(member, partial(member.leave_at_once, MemberLost("the client was closed")))
        if self._members and self._stream is not None:
            self._stream.finish()
        if self._timer is not None:
            self._timer.cancel()
        self._credentials.stop()
        if self._task is not None:
            if self._stream is not None and self._stream.is_ending:
                # The last member's messages must still go out.
                await asyncio.wait((self._task,), timeout=FINISH_S)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self._channel.close()

    async def report_end_offsets(self, ends: Mapping[TopicPartition, int]) -> float:
        """Tell where partitions end whose records the server does not have, for the lag of groups.

        An end is the offset after the last record. Returns for how many seconds the server believes
        it: report again two or three times in that time, however little has changed. It needs the
        right to write to the topics. Raises ``ReportFailed`` if only some were taken, otherwise
        ``MusterError``; the next report may do.
        """
        self.check_open()
        return await report_end_offsets(self.stub, ends)

    # ------------------------------------------------------------------------ used by members

    @property
    def stub(self) -> group_pb2_grpc.GroupServiceAsyncStub:
        """Group calls on the present connection."""
        return self._channel.group

    @property
    def classic(self) -> classic_pb2_grpc.ClassicServiceAsyncStub:
        """Calls of classic members on the present connection."""
        return self._channel.classic

    @property
    def admin(self) -> admin_pb2_grpc.AdminServiceAsyncStub:
        """Admin calls on the present connection."""
        return self._channel.admin

    @property
    def trouble(self) -> str:
        """Why the server cannot be reached, for humans."""
        return self._channel.trouble

    @property
    def is_restarting(self) -> bool:
        """Whether the stream ends under its members, and a new one is to come."""
        if self._task is None or self._is_closed:
            return False
        is_begun_anew = self._is_begun_anew or self._credentials.is_moving
        return is_begun_anew or self._task.cancelling() > 0

    def check_open(self) -> None:
        """Raise ``MemberLost`` if the client was closed."""
        if self._is_closed:
            raise MemberLost("the client was closed")

    def enter(self, member: StreamMember) -> None:
        """Add a member; it joins on the present stream, or on the next one."""
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
        """Open a stream for a member that wants to leave, if ``asyncio.run`` cancelled the last."""
        if self._task is not None and self._task.cancelled():
            self._begin_anew()

    def leave(self, member: StreamMember) -> None:
        """Remove a member; without members the stream ends."""
        key = (member.group_id, member.member_id)
        if self._members.get(key) is member:
            del self._members[key]
        if not self._members and self._stream is not None:
            self._stream.finish()

    def watch(self, member: ClosedMember) -> None:
        """Notify a member that uses no stream when the client is closed."""
        self.check_open()
        self._watchers[member] = None

    def unwatch(self, member: ClosedMember) -> None:
        """Undo ``watch``."""
        self._watchers.pop(member, None)

    def rename(self, old_member_id: str, member: StreamMember) -> None:
        """The member has a new member id."""
        self._members.pop((member.group_id, old_member_id), None)
        self._members[(member.group_id, member.member_id)] = member

    async def commit(
        self, member: StreamMember, member_epoch: int, topics: Sequence[types_pb2.TopicOffsets]
    ) -> group_pb2.CommitResult | None:
        """Commit on the stream; ``None`` if the stream breaks before the answer."""
        if self._stream is None:
            return None
        return await self._commits.send(
            self._stream, member.group_id, member.member_id, member_epoch, topics
        )

    async def replace_silent(self, classic: classic_pb2_grpc.ClassicServiceStub) -> None:
        """Replace the connection of this stub, whose calls go unanswered: it may be half-open.

        If members use the stream, only the stream's silence decides that.
        """
        if classic is self.classic and not self._members and not self._is_closed:
            await self._channel.replace()

    async def follow_files(self) -> None:
        """Open a new connection if the TLS files have changed, unless a stream will do that."""
        if self._channel.has_old_files and not self._members and not self._is_closed:
            await self._channel.replace()

    def expect(self, heartbeat_interval_ms: int) -> None:
        """The server promises a message at least this often."""
        self._silence.expect(heartbeat_interval_ms)
        self.arm(read_clock() + self._silence.limit_s)

    def arm(self, deadline: float) -> None:
        """Check leases and silence at this time of ``read_clock``, or before."""
        delay = max(0.0, deadline - read_clock())
        if self._timer is None or self._timer.when() > self._loop.time() + delay:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_later(delay, self._on_timer)

    # ----------------------------------------------------------------------------- reconnecting

    def _move(self) -> None:
        """Let the members go on on a stream with the new token, before the former one ends."""
        if self._stream is not None and not self._stream.is_ending:
            self._credentials.move()
            self._stream.hand_over()

    def _begin(self) -> None:
        self._credentials.is_refused = False
        self._task = self._loop.create_task(self._run())
        self._task.add_done_callback(self._on_run_ended)

    def _on_run_ended(self, task: asyncio.Task[None]) -> None:
        """Start again for members that are leaving: ``asyncio.run`` cancels all tasks as it ends.

        Without such members no task is left behind: nobody would await it.
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
            if not self._members or self._is_closed or self._credentials.is_refused:
                return
            if self._credentials.take_at_once() or self._is_finished:
                # The token is new, or the last member has left and another one has entered since.
                self._is_finished = False
                backoff_s = _BACKOFF_MIN_S
                continue
            backoff_s = min(2 * backoff_s, _BACKOFF_MAX_S)
            if served_s > _BACKOFF_MAX_S:
                # This one worked for a while; the backoff is for servers that fail repeatedly.
                backoff_s = _BACKOFF_MIN_S
            await self._back_off(backoff_s)

    async def _back_off(self, backoff_s: float) -> None:
        await asyncio.sleep(backoff_s * random.uniform(0.5, 1.0))

    async def _open_and_serve(self) -> float:
        """Serve the members until the stream ends; return for how many seconds it was heard."""
        opened_at = heard_at = read_clock()
        try:
            if self._silence.is_silent:
                self._silence.is_silent = False
                await self._channel.replace()
            await self._channel.wait_until_ready()
            await self._credentials.prepare()
            stream = Stream(self.stub.Session(None), self._receive)
            opened_at = stream.received_at
            try:
                await self._serve(stream)
            finally:
                heard_at = stream.received_at
                self._is_finished = stream.is_finished
        except grpc.aio.AioRpcError as error:
            if says_nothing(error):
                self._channel.trouble = await self._channel.find_trouble()
            else:
                self._channel.trouble = describe_trouble(error)
            _LOG.info("session_lost target=%s cause=%s", self.target, self._channel.trouble)
            if self._credentials.handle_error(error):
                self._fail(AuthenticationFailed(f"{self.target}: {self._channel.trouble}"))
        except TokenUnavailable as error:
            self._channel.trouble = str(error)
        except Exception as error:  # noqa: BLE001 - all members need the next stream
            cause = f"{type(error).__name__}: {error}"
            if cause != self._channel.trouble:
                _LOG.error("session_failed target=%s", self.target, exc_info=error)
            self._channel.trouble = cause
        return heard_at - opened_at

    def _fail(self, failure: MusterError) -> None:
        """Nothing that the members repeat would help."""
        for member in tuple(self._members.values()):
            self._call(member, partial(member.leave_at_once, failure))

    # -------------------------------------------------------------------------------- the stream

    async def _serve(self, stream: Stream) -> None:
        self._stream = stream
        self._is_begun_anew = self._credentials.is_moving = False
        self.arm(read_clock() + self._silence.limit_s)
        try:
            for member in tuple(self._members.values()):
                self._call(member, partial(member.on_stream, stream))
            await stream.run()
        finally:
            self._stream = None
            for member in tuple(self._members.values()):
                self._call(member, partial(member.on_stream_lost, stream))
            self._commits.on_stream_lost()

    def _call(self, member: StreamMember | ClosedMember, call: Callable[[], T]) -> T | None:
        """Call a member. If it raises, only that member fails; the others are still called."""
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
        self._credentials.note_served()
        for update in response.updates:
            if update.HasField("commit_result"):
                self._commits.on_result(update.commit_result)
                continue
            member = self._members.get((update.group_id, update.member_id))
            if member is not None:
                self._call(member, partial(member.on_update, update, stream))

    def _on_timer(self) -> None:
        """End leases that have run out, and give up the stream of a silent server."""
        self._timer = None
        now = read_clock()
        deadlines = []
        for member in tuple(self._members.values()):
            deadline = self._call(member, partial(member.check_lease, now))
            if deadline is not None:
                deadlines.append(deadline)
        stream = self._stream
        if stream is not None:
            check_at = self._silence.check(stream.received_at, now)
            if check_at is not None:
                deadlines.append(check_at)
            else:
                self._channel.trouble = "it fell silent"
                stream.shut()
        if deadlines:
            self.arm(min(deadlines))
