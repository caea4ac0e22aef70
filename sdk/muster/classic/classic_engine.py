"""Carries one member through a classic group: join, sync, heartbeats, and joining again.

The member owns what it was assigned until its lease ends by its own clock, as in
``muster.connection.lease``: a heartbeat or a sync that the server answered was received after it
was sent, and began the session anew, so a lease that runs from the sending ends before the session
does, and before a rebalance can end that the server did not know of then.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import secrets
from collections.abc import Callable
from enum import Enum
from typing import Any, Final

import grpc
import grpc.aio

from muster.assignors.classic import JoinedMember
from muster.callbacks import is_in_callback
from muster.classic.classic_options import ClassicOptions
from muster.classic.classic_protocol import (
    NO_GENERATION,
    UNKNOWN_SERVER_ERROR,
    AssignmentFailed,
    Generation,
    GroupProtocol,
)
from muster.commit_order import CommitOrder
from muster.connection.client import Client
from muster.connection.lease import ClassicLease, read_clock
from muster.connection.unary import ask, describe_trouble, is_cancelled, raise_failures, stop
from muster.errors import (
    FENCED_INSTANCE_ID,
    GROUP_AUTHORIZATION_FAILED,
    ILLEGAL_GENERATION,
    MEMBER_ID_REQUIRED,
    PASSING,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    CallbackFailed,
    JoinRefused,
    MemberLost,
    MusterError,
    decode_error,
)
from muster.v1 import classic_pb2, classic_pb2_grpc, types_pb2

_LOG = logging.getLogger("muster")
_BACKOFF_MIN_S: Final = 0.05
_BACKOFF_MAX_S: Final = 2.0
_GRACE_S: Final = 5.0
_LEAVE_TIMEOUT_S: Final = 5.0
_UNANSWERED_MAX: Final = 3
"""So many heartbeats without an answer: the connection is given up."""
_HOPELESS: Final = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)
"""Statuses that the same request would meet again."""


class Phase(Enum):
    """OUT before the start and after the end."""

    OUT = "out"
    JOINING = "joining"
    SYNCING = "syncing"
    MEMBER = "member"


class _Lost(Exception):
    """The member is none any more; ``forgets_id``: not even its id is known."""

    def __init__(self, reason: str, *, forgets_id: bool) -> None:
        super().__init__(reason)
        self.forgets_id = forgets_id


class _Again(Exception):
    """The generation came to nothing: join again, a little later where ``waits``."""

    def __init__(self, *, waits: bool) -> None:
        super().__init__()
        self.waits = waits


class _Closing(Exception):
    """The application wants to leave."""


class ClassicEngine:
    """One member of a classic group on one connection."""

    def __init__(
        self, client: Client, group_id: str, protocol: GroupProtocol, options: ClassicOptions
    ) -> None:
        self.client = client
        self.group_id = group_id
        self.protocol = protocol
        self.options = options
        self.member_id = ""
        self.generation = NO_GENERATION
        self.leader = ""
        self.phase = Phase.OUT
        self.commits = CommitOrder()
        self.has_left = False
        self.failure: MusterError | None = None
        self.trouble = ""
        """Why the member is not in its group yet, for people."""
        self.kept: list[CallbackFailed] = []
        """What the application raised where it was asked to assign."""
        self._has_lease = False
        self._joined_at = float("-inf")
        """When the join was sent that was answered last."""
        self._lease = ClassicLease(options.session_timeout_ms, options.rebalance_timeout_ms)
        self._lost: _Lost | None = None
        self._rejoin_reason = ""
        self._join_sequences = itertools.count(1)
        self._incarnation = secrets.randbits(62) | 1
        self._unanswered = 0
        self._is_closing = False
        self._interrupt = asyncio.Event()
        self._wake = asyncio.Event()
        self._begun = asyncio.Event()
        self._changed = asyncio.Event()
        self._main: asyncio.Task[None] | None = None
        self._beats: asyncio.Task[None] | None = None

    # --------------------------------------------------------------------- used by the member

    @property
    def holds(self) -> bool:
        """Whether the member owns what it was assigned at this moment, by its own clock too."""
        return self._has_lease and self._lost is None and read_clock() < self._lease_deadline()

    @property
    def is_leader(self) -> bool:
        """Whether the member leads its group's current generation."""
        return self.generation != NO_GENERATION and self.leader == self.member_id

    @property
    def is_in_callback(self) -> bool:
        """Whether this is called from a callback of the member, or a task that it has started."""
        return self._main is asyncio.current_task() or is_in_callback(self.protocol.caller)

    def start(self) -> None:
        """Joins."""
        self.client.watch(self)
        self.phase = Phase.JOINING
        self._main = asyncio.create_task(self._run())
        self._beats = asyncio.create_task(self._beat())

    def begin(self) -> None:
        """Callbacks may be called from now on."""
        self._begun.set()

    async def wait_for_change(self) -> None:
        """Returns after the next change of anything."""
        await self._changed.wait()

    def notify(self) -> None:
        """Something has changed."""
        self._changed.set()
        self._changed.clear()

    def rejoin(self, reason: str) -> None:
        """Joins again, so that the group hears what the member says now."""
        self._rejoin_reason = reason
        self._wake.set()

    def leave_at_once(self, failure: MusterError) -> None:
        """The connection was closed: nobody can speak for the member any more."""
        self.failure = failure
        self._lose(_Lost(str(failure), forgets_id=True))

    async def give_up(self) -> None:
        """Lets a callback that runs finish, and gives everything up."""
        self._is_closing = True
        self._begun.set()
        self._interrupt.set()
        self._wake.set()
        if self._main is not None:
            await asyncio.wait((self._main,))
        end = self.protocol.give_up() if self.holds else self.protocol.lose()
        # As the last thing that the application does; ``stop_callback`` ends it.
        self._main = asyncio.ensure_future(end)
        await asyncio.wait((self._main,))

    async def stop_callback(self) -> None:
        """Cancels a callback that runs, and lets it end: nobody gets the assignment before."""
        self._is_closing = True
        if self._main is not None:
            await stop(self._main, self._lease_deadline())

    def detach(self) -> None:
        """Forgets everything. The member stays in its group until it expires, if it is there."""
        self._is_closing = True
        self.client.unwatch(self)
        for task in (self._main, self._beats):
            if task is not None:
                task.cancel()
        self._drop()
        self.phase = Phase.OUT
        self.notify()

    # -------------------------------------------------------------------------------- the loop

    async def _run(self) -> None:
        backoff_s, waits = _BACKOFF_MIN_S, False
        try:
            while True:
                try:
                    if waits:
                        waits = False
                        await self._pause(backoff_s)
                        backoff_s = min(2 * backoff_s, _BACKOFF_MAX_S)
                    await self._go_round()
                    backoff_s = _BACKOFF_MIN_S
                except _Lost as lost:
                    await self._on_lost(lost)
                except _Again as again:
                    waits = again.waits
        except _Closing:
            return
        except MusterError as failure:
            self.failure = failure
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            # The application has awaited something that was cancelled, where it was asked.
            _LOG.error("member_failed group=%s", self.group_id, exc_info=True)
            self.failure = MusterError("the member failed: something it awaited was cancelled")
        except Exception as error:  # noqa: BLE001 - kept, and raised where the application looks
            _LOG.error("member_failed group=%s", self.group_id, exc_info=error)
            self.failure = MusterError(f"the member failed: {type(error).__name__}: {error}")
        finally:
            self.phase = Phase.OUT
            self.notify()
        self._drop()
        await self.protocol.lose()
        self.notify()

    async def _go_round(self) -> None:
        """From a join to the next one."""
        if not await self.protocol.prepare_join():
            self._drop()
        self.phase = Phase.JOINING
        self._check_closing()
        generation, skips = await self._join()
        self.phase = Phase.SYNCING
        assignment = await self._sync(generation, skips)
        self.phase = Phase.MEMBER
        self.trouble = ""
        self.notify()
        await self._begun.wait()
        self._check_closing()
        rejoins = await self.protocol.take(generation, assignment, lambda: self.holds)
        self.notify()
        self._check_lost()
        if not self.holds:
            # It was not taken, or is no longer held; a heartbeat under way may renew the lease.
            raise _Lost("the session has ended", forgets_id=False)
        if not rejoins:
            await self._stay()

    async def _join(self) -> tuple[Generation, bool]:
        """The generation, and whether its leader assigns nothing."""
        while True:
            self._rejoin_reason, reason = "", self._rejoin_reason
            request = classic_pb2.JoinGroupRequest(
                group_id=self.group_id,
                member_id=self.member_id,
                instance_id=self.options.instance_id,
                client_id=self.options.client_id,
                session_timeout_ms=self.options.session_timeout_ms,
                rebalance_timeout_ms=self.options.rebalance_timeout_ms,
                protocol_type=self.protocol.protocol_type,
                protocols=[
                    classic_pb2.GroupProtocol(name=name, metadata=metadata)
                    for name, metadata in self.protocol.make_protocols()
                ],
                reason=reason,
                incarnation=self._incarnation,
            )
            sent_at = read_clock()
            answer = await self._ask(lambda: self.client.classic.JoinGroup, request)
            match answer.error.error_code:
                case 0:
                    self._joined_at = sent_at
                    if answer.leader:
                        self._lease.note_undisturbed(sent_at)
                    return self._accept(answer), answer.skip_assignment
                case code if code == MEMBER_ID_REQUIRED:
                    self.member_id = answer.member_id
                case code if code == REBALANCE_IN_PROGRESS:
                    raise _Again(waits=True)
                case code if code == UNKNOWN_MEMBER_ID and self.member_id:
                    raise _Lost(answer.error.reason, forgets_id=True)
                case code if code == FENCED_INSTANCE_ID:
                    raise decode_error(answer.error, MemberLost)
                case _:
                    raise decode_error(answer.error, JoinRefused)

    def _accept(self, answer: classic_pb2.JoinGroupResponse) -> Generation:
        self.member_id = answer.member_id
        self.generation = answer.generation
        self.leader = answer.leader
        members = tuple(
            JoinedMember(each.member_id, each.instance_id or None, each.metadata)
            for each in answer.members
        )
        return Generation(
            answer.generation, answer.member_id, answer.leader, answer.protocol_name, members
        )

    async def _sync(self, generation: Generation, skips: bool) -> bytes:
        """The assignment. Raises ``_Again`` where there is none."""
        request = classic_pb2.SyncGroupRequest(
            group_id=self.group_id,
            member_id=generation.member_id,
            instance_id=self.options.instance_id,
            generation=generation.generation,
            protocol_type=self.protocol.protocol_type,
            protocol_name=generation.protocol_name,
            client_id=self.options.client_id,
        )
        if generation.is_leader and skips:
            await self.protocol.note_skipped(generation)
        elif generation.is_leader:
            await self._assign(generation, request)
        sent_at = read_clock()
        answer = await self._ask(lambda: self.client.classic.SyncGroup, request)
        match answer.error.error_code:
            case 0:
                assignment: bytes = answer.assignment
                self._lease.note_renewed(sent_at)
                if generation.leader:
                    self._lease.note_undisturbed(sent_at)
                elif not (self._has_lease and self.protocol.gives_up(assignment)):
                    # A consumer group: a join that frees nothing puts no removal off.
                    self._lease.note_undisturbed(self._joined_at)
                self._has_lease = True
                return assignment
            case code if code in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION):
                raise _Lost(answer.error.reason, forgets_id=code == UNKNOWN_MEMBER_ID)
            case code if code in (FENCED_INSTANCE_ID, GROUP_AUTHORIZATION_FAILED):
                raise decode_error(answer.error, MemberLost)
            case code if code == REBALANCE_IN_PROGRESS:
                raise _Again(waits=request.HasField("failure"))
            case _:
                # The leader could not assign; another one, or the same later, may.
                self.trouble = str(decode_error(answer.error))
                _LOG.warning("assignment_failed group=%s %s", self.group_id, self.trouble)
                raise _Again(waits=True)

    async def _assign(self, generation: Generation, request: classic_pb2.SyncGroupRequest) -> None:
        """Leads: puts what each gets into the request, or why that cannot be said."""
        try:
            assigned = await raise_failures(self.protocol.assign(generation))
        except AssignmentFailed as error:
            request.failure.error_code = error.code
            request.failure.error_message = str(error)
        except Exception as error:  # noqa: BLE001 - kept, and raised where the application looks
            _LOG.error("assign_failed group=%s", self.group_id, exc_info=error)
            failure = CallbackFailed(f"assigning raised {type(error).__name__}: {error}")
            failure.__cause__ = error
            self.kept.append(failure)
            request.failure.error_code = UNKNOWN_SERVER_ERROR
            request.failure.error_message = str(error)[:200]
        else:
            for member_id, assignment in assigned.items():
                request.assignments.add(member_id=member_id, assignment=assignment)

    async def _stay(self) -> None:
        """Returns when the member has to join again."""
        while not self._rejoin_reason:
            self._check_lost()
            self._check_closing()
            self._wake.clear()
            try:
                async with asyncio.timeout(self.options.metadata_refresh_ms / 1000):
                    await self._wake.wait()
            except TimeoutError:
                if self.is_leader and await self.protocol.is_outdated():
                    self._rejoin_reason = "topics have changed"
        self._check_lost()

    async def _on_lost(self, lost: _Lost) -> None:
        _LOG.warning(
            "member_lost group=%s member=%s reason=%s", self.group_id, self.member_id, lost
        )
        was_member = self._has_lease or self.generation != NO_GENERATION
        self._drop()
        self._lost = None
        self._interrupt.clear()
        if lost.forgets_id:
            self.member_id = ""
        self.notify()
        await self.protocol.lose()
        self._check_closing()
        if self.failure is not None:
            raise self.failure
        if was_member and not self.options.rejoin:
            raise MemberLost(f"the member was fenced or has expired: {lost}")

    def _drop(self) -> None:
        """The member owns nothing, and is in no generation."""
        self.generation = NO_GENERATION
        self._has_lease = False

    def _check_closing(self) -> None:
        if self._is_closing:
            raise _Closing

    def _check_lost(self) -> None:
        if self._lost is not None:
            raise self._lost

    # ------------------------------------------------------------------------------ heartbeats

    def _lease_deadline(self) -> float:
        return self._lease.compute_deadline()

    async def _beat(self) -> None:
        """Keeps the session alive in every phase, and says where it has ended."""
        interval_s = self._lease.compute_interval_s(self.options.heartbeat_interval_ms)
        while True:
            delay_s = interval_s
            if self._has_lease:
                delay_s = min(delay_s, max(0.0, self._lease_deadline() - read_clock()))
            await asyncio.sleep(delay_s)
            if self.generation == NO_GENERATION or self._lost is not None:
                await asyncio.sleep(interval_s if delay_s == 0 else 0)
                continue
            if self._has_lease and not self.holds:
                self._lose(_Lost("the session has ended", forgets_id=False))
                if self._unanswered:
                    await self._replace_connection(self.client.classic)
                continue
            await self._beat_once(max(interval_s, 1.0))

    async def _beat_once(self, timeout_s: float) -> None:
        generation, sent_at = self.generation, read_clock()
        if self._has_lease:
            timeout_s = min(timeout_s, max(0.01, self._lease_deadline() - sent_at))
        request = classic_pb2.ClassicHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            instance_id=self.options.instance_id,
            generation=generation,
            client_id=self.options.client_id,
        )
        classic = self.client.classic
        try:
            answer = await ask(classic.Heartbeat, request, timeout=timeout_s)
        except grpc.aio.AioRpcError as error:
            self.trouble = describe_trouble(error)
            self._unanswered += error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
            if self._unanswered >= _UNANSWERED_MAX:
                await self._replace_connection(classic)
            return
        self._unanswered = 0
        if generation == self.generation:
            self._on_beat(answer.error, answer.is_held, sent_at)

    async def _replace_connection(self, classic: classic_pb2_grpc.ClassicServiceStub) -> None:
        """Nobody answers there: the other end may be gone without a word."""
        self._unanswered = 0
        await self.client.replace_silent(classic)

    def _on_beat(self, error: types_pb2.Error, is_held: bool, sent_at: float) -> None:
        code = error.error_code
        if code in (0, REBALANCE_IN_PROGRESS):
            self._lease.note_renewed(sent_at)
            if is_held or (code == 0 and self.phase is Phase.MEMBER):
                self._lease.note_undisturbed(sent_at)
        if self.phase is Phase.JOINING:
            # The answer to the join, which is on its way, says more.
            return
        if code == REBALANCE_IN_PROGRESS:
            self.rejoin("the group is rebalancing")
        elif code in (UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, FENCED_INSTANCE_ID):
            # Who was fenced asks with its next join, and is told that for good.
            self._lose(_Lost(error.reason, forgets_id=code == UNKNOWN_MEMBER_ID))

    def _lose(self, lost: _Lost) -> None:
        self._lost = lost
        self._interrupt.set()
        self._wake.set()
        self.notify()

    # ----------------------------------------------------------------------------------- calls

    async def _ask(self, find_method: Callable[[], Any], request: Any) -> Any:
        """The answer to a call that may wait for others, asked again as long as that can help."""
        backoff_s = _BACKOFF_MIN_S
        timeout_s = self.options.rebalance_timeout_ms / 1000 + _GRACE_S
        while True:
            if isinstance(request, classic_pb2.JoinGroupRequest):
                request.sequence = next(self._join_sequences)
            classic = self.client.classic
            try:
                answer = await self._race(find_method()(request, timeout=timeout_s))
            except grpc.aio.AioRpcError as error:
                self.trouble = describe_trouble(error)
                if error.code() in _HOPELESS:
                    raise JoinRefused(self.trouble) from error
                if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                    await self._replace_connection(classic)
            else:
                if answer is not None and answer.error.error_code not in PASSING:
                    return answer
            await self._pause(backoff_s)
            backoff_s = min(2 * backoff_s, _BACKOFF_MAX_S)

    async def _race(self, call: Any) -> Any:
        """The answer; ``None`` where the connection was closed. Raises what interrupts it."""
        answering = asyncio.ensure_future(call)
        interrupted = asyncio.ensure_future(self._interrupt.wait())
        try:
            await asyncio.wait((answering, interrupted), return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                self._check_interrupted()
            return None if answering.cancelled() else answering.result()
        finally:
            interrupted.cancel()
            answering.cancel()

    async def _pause(self, delay_s: float) -> None:
        try:
            async with asyncio.timeout(delay_s * random.uniform(0.5, 1.0)):
                await self._interrupt.wait()
        except TimeoutError:
            return
        self._check_interrupted()

    def _check_interrupted(self) -> None:
        self._check_closing()
        self._check_lost()

    async def leave(self, timeout_s: float = _LEAVE_TIMEOUT_S) -> None:
        """Tells the group; what does not arrive is made up for by the end of the session."""
        self.has_left = True
        leaving = classic_pb2.LeavingMember(
            member_id=self.member_id,
            instance_id=self.options.instance_id,
            reason="the member is closed",
        )
        request = classic_pb2.LeaveGroupRequest(
            group_id=self.group_id, members=[leaving], client_id=self.options.client_id
        )
        try:
            await ask(self.client.classic.LeaveGroup, request, timeout=timeout_s)
        except grpc.aio.AioRpcError:
            _LOG.warning("leave_unanswered group=%s member=%s", self.group_id, self.member_id)
