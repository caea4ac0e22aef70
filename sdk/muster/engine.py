"""Carries out what ``Membership`` decides: callbacks, messages and timers of one member."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, assert_never

from muster.arguments import INT32_MAX, check_int
from muster.callbacks import Callbacks, CallbackStep, is_in_callback
from muster.client_assignor import Assignor
from muster.commit_order import CommitOrder
from muster.computing import Computing
from muster.connection.client import Client
from muster.connection.lease import Lease, read_clock
from muster.connection.stream import Stream
from muster.connection.unary import stop
from muster.errors import (
    UNRELEASED_INSTANCE_ID,
    CallbackFailed,
    JoinRefused,
    MemberLost,
    MusterError,
    decode_error,
)
from muster.membership import (
    Acknowledge,
    Assign,
    Inform,
    Lose,
    Membership,
    Partitions,
    Rejoin,
    Revoke,
    Status,
    Step,
)
from muster.partitions import encode_partitions, make_member_id
from muster.v1 import assignors_pb2, group_pb2

_LOG = logging.getLogger("muster")
_RETRY_DELAY_S: Final = 0.1
_RECEIPT_DELAY_S: Final = 0.1
_LEAVE_TIMEOUT_S: Final = 5.0
_NOTHING: Final[Partitions] = frozenset()
_LEAVE_EPOCH: Final = -1
_STATIC_LEAVE_EPOCH: Final = -2


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """What a member says of itself when it joins."""

    topics: tuple[str, ...]
    topic_regex: str
    rebalance_timeout_ms: int
    server_assignor: str
    rack_id: str
    client_id: str
    instance_id: str
    rejoin: bool
    assignors: tuple[Assignor, ...] = ()
    incarnation: int = 0
    """Who uses a member id that others may use too; 0 for one that was made up."""


class Engine:
    """One member on one connection. ``changed`` is set for a moment at each change."""

    def __init__(
        self,
        client: Client,
        group_id: str,
        member_id: str,
        options: MemberOptions,
        callbacks: Callbacks,
        join_id: int = 0,
    ) -> None:
        """``join_id``: those of the member are above it, and above those of its earlier runs."""
        self.client = client
        self.group_id = group_id
        self.member_id = member_id
        self.membership = Membership(join_id=join_id)
        self.commits = CommitOrder()
        self.failure: MusterError | None = None
        self.unknown_topics: frozenset[str] = frozenset()
        self.leaves_for_good = not options.instance_id
        """Otherwise the group keeps its partitions for it until its session ends."""
        self._refusal: MusterError | None = None
        self._options = options
        self._incarnation = options.incarnation
        self._callbacks = callbacks
        self._loop = asyncio.get_running_loop()
        self._stream: Stream | None = None
        self._joined_on: Stream | None = None
        """Where a Join was sent, and no Leave since."""
        self._lease = Lease()
        self._changed = asyncio.Event()
        self._callback: asyncio.Future[None] | None = None
        self._left: asyncio.Future[bool] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._receipt: asyncio.TimerHandle | None = None
        self._computing = Computing(
            group_id,
            options.assignors,
            self._send_of_assignment,
            lambda: self.membership.member_epoch,
        )
        self._may_begin = self._is_advancing = False
        self._is_closing = False

    # --------------------------------------------------------------------- used by the member

    @property
    def holds(self) -> bool:
        """Whether the member is one at this moment, by its own clock too."""
        if self.membership.status is not Status.MEMBER:
            return False
        return read_clock() < self._compute_lease_deadline()

    @property
    def trouble(self) -> str:
        """Why the member is not in its group yet, for people."""
        return self.client.trouble if self._refusal is None else str(self._refusal)

    @property
    def can_ask(self) -> bool:
        """Whether the member is one, and on a stream."""
        return self.holds and self._stream is not None and self.membership.is_answered

    @property
    def is_leaving(self) -> bool:
        """Whether the member gives up, and nothing else happens to it."""
        return self._is_closing

    @property
    def is_in_callback(self) -> bool:
        """Whether this is called from a callback of the member, or a task that it has started."""
        return is_in_callback(self._callbacks)

    def start(self) -> None:
        """Joins as soon as there is a stream."""
        self.membership.status = Status.JOINING
        self.client.enter(self)

    def begin(self) -> None:
        """Callbacks may be called from now on."""
        self._may_begin = True
        self._advance()

    async def wait_for_change(self) -> None:
        """Returns after the next change of anything."""
        await self._changed.wait()

    def leave_at_once(self, failure: MusterError) -> None:
        """Leaves without asking the application, which does not answer, or has failed."""
        if self.membership.status is Status.OUT:
            return
        self.failure = failure
        self._leave_behind_nobody()
        self._lose()

    def return_to_group(self) -> None:
        """Joins again after ``leave_at_once``."""
        self.failure = None
        self.membership.return_to_group()
        self._advance()

    def request_assignment(self, reason: int) -> None:
        """Says anew what the member's assignors say of it, and why it wants an assignment."""
        self._computing.reason = check_int("reason", reason, -INT32_MAX - 1)
        if self._stream is not None and self.membership.status is Status.MEMBER:
            self._send_join(self._stream)

    async def give_up(self) -> None:
        """Lets the application finish, then leaves. Nothing else happens to the member after."""
        self._is_closing = True
        self.client.resume()
        self._notify()
        if self._callback is not None:
            await asyncio.wait((self._callback,))
        if self.holds:
            revoked = frozenset(self.membership.owned)
            if revoked:
                await self._call(Revoke(revoked))
                self.membership.finish_revoke(revoked)
        if self.membership.status in (Status.MEMBER, Status.JOINING):
            # A Join that is under way would leave a member behind that nobody speaks for.
            await self._leave()
        self.membership.lose()
        if self.membership.lost:
            await self._call(Lose(frozenset(self.membership.lost)))
        self.membership.leave()

    async def stop_callback(self) -> None:
        """Cancels the callback that runs, and lets it end: nobody gets the partitions before."""
        self._is_closing = True
        if self._callback is not None:
            await stop(self._callback, self._compute_lease_deadline())

    def detach(self) -> None:
        """Forgets everything. Where that can be told, the member leaves its group.

        A join or a close that was cancelled would leave a member behind that the stream renews for
        as long as others are on it.
        """
        self._is_closing = True
        self._leave_behind_nobody()
        self.membership.leave()
        self._computing.stop()
        for timer in (self._retry, self._receipt):
            if timer is not None:
                timer.cancel()
        if self._callback is not None:
            self._callback.cancel()
        self.client.leave(self)
        self._notify()

    # ------------------------------------------------------------------ told by the connection

    def on_stream(self, stream: Stream) -> None:
        """A stream is open: join, or resume, on it."""
        self._stream = stream
        self.check_lease(read_clock())
        if self.membership.status in (Status.JOINING, Status.MEMBER):
            self._join(stream)
        self._notify()

    def on_stream_lost(self, stream: Stream) -> None:
        """The member stays one as long as its lease."""
        self._lease.settle(stream.sent)
        self._stream = None
        if self._left is not None and not self._left.done():
            self._left.set_result(False)
        self._notify()

    def on_update(self, update: group_pb2.MemberUpdate, stream: Stream) -> None:
        """The server tells the member something."""
        kind = update.WhichOneof("update")
        if kind == "left":
            if self._left is not None and not self._left.done():
                self._left.set_result(True)
        elif update.join_id != self.membership.join_id:
            # It was said before the server had seen our last Join.
            return
        elif kind == "assignment":
            self._on_assignment(update, stream)
        elif kind == "fenced":
            self._on_fenced(update.fenced)
        elif kind == "refused":
            self._on_refused(update.refused, stream)
        elif self._stream is stream and self.membership.status is Status.MEMBER:
            self._computing.on_update(update)

    def check_lease(self, now: float) -> float | None:
        """Loses the partitions if the lease has ended; when to look again, if ever."""
        if self.membership.status is not Status.MEMBER:
            return None
        deadline = self._compute_lease_deadline()
        if now < deadline:
            return deadline
        _LOG.warning("member_expired group=%s member=%s", self.group_id, self.member_id)
        self._leave_behind_nobody()
        self._lose()
        return None

    # ------------------------------------------------------------------------------- internal

    def _compute_lease_deadline(self) -> float:
        return self._lease.compute_deadline(None if self._stream is None else self._stream.sent)

    def _on_assignment(self, update: group_pb2.MemberUpdate, stream: Stream) -> None:
        assignment = update.assignment
        is_answer = not self.membership.is_answered
        self._note_unknown(frozenset(assignment.unknown_topics))
        if not self.membership.handle_assignment(update.join_id, assignment):
            return
        if is_answer:
            self._refusal = None
            self._lease.note_joined(stream.next_sequence, assignment.session_timeout_ms)
            self.client.expect(assignment.heartbeat_interval_ms)
        else:
            self._lease.note_told(assignment.session_timeout_ms)
        deadline = self.check_lease(read_clock())
        if deadline is not None:
            self.client.arm(deadline)
        if self._callback is not None:
            self._arm_receipt()
        self._advance()

    def _note_unknown(self, topics: frozenset[str]) -> None:
        if topics - self.unknown_topics:
            names = ",".join(sorted(topics))
            _LOG.warning("unknown_topics group=%s topics=%s", self.group_id, names)
        self.unknown_topics = topics

    def _on_fenced(self, fenced: group_pb2.Fenced) -> None:
        reason = fenced.error.reason
        _LOG.warning(
            "member_fenced group=%s member=%s reason=%s", self.group_id, self.member_id, reason
        )
        if fenced.superseded:
            # Somebody else uses this id: with another one both can live.
            self._joined_on = None
            self._incarnation = 0
            old, self.member_id = self.member_id, make_member_id()
            self.client.rename(old, self)
        elif self._stream is not None and not self._options.instance_id:
            # Others need not wait for the end of its lease, whatever a callback still does.
            self._send_leave(self._stream)
        self._lose()

    def _on_refused(self, refused: group_pb2.Refused, stream: Stream) -> None:
        waits = self._waits_for_its_instance(refused)
        if refused.retriable or waits:
            refusal = decode_error(refused.error)
            if waits and str(refusal) != str(self._refusal):
                # Who has it may keep it for good, and whoever waits owns nothing meanwhile.
                _LOG.warning("join_waits group=%s reason=%s", self.group_id, refusal)
            self._refusal = refusal
            self._arm_retry()
            if not self.membership.is_answered:
                self._lease.settle(stream.sent)
            return
        self.failure = decode_error(refused.error, JoinRefused)
        # The group may have it from before, and nobody joins or renews it any more.
        self._leave_behind_nobody()
        if self.membership.status is Status.JOINING:
            self.membership.leave()
            self._notify()
        else:
            self._lose()

    def _waits_for_its_instance(self, refused: group_pb2.Refused) -> bool:
        """Who was this instance before did not leave: its session will end."""
        is_taken = refused.error.error_code == UNRELEASED_INSTANCE_ID
        return is_taken and self.membership.status is Status.JOINING

    def _lose(self) -> None:
        self._computing.stop()
        self._lease.end()
        self.membership.lose()
        self._advance()

    def _advance(self) -> None:
        """Takes steps until there is nothing to do, or a callback has to be awaited.

        A plain callback may call what comes back here: the step that it is called for comes first.
        """
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            while self._callback is None and not self._is_closing:
                step = self.membership.compute_step()
                # Who loses what it was told while it still waits to be in has to join again.
                if not self._may_begin and not isinstance(step, Rejoin):
                    break
                if step is None or not self._take(step):
                    break
        finally:
            self._is_advancing = False
        self._notify()

    def _take(self, step: Step) -> bool:
        """Whether the step could be taken."""
        match step:
            case Acknowledge(message):
                if self._stream is None:
                    return False
                self._send(self._stream, acknowledge=message)
                self.membership.acknowledged_id = message.assignment_id
            case Rejoin():
                self._rejoin()
            case Assign() | Revoke() | Lose() | Inform():
                self._begin(step)
            case _:
                assert_never(step)
        return True

    def _begin(self, step: CallbackStep) -> None:
        if isinstance(step, Assign):
            self.membership.begin_assign(step.partitions)
        waiting = self._callbacks.call(step)
        if waiting is None:
            self._finish(step)
        else:
            self._callback = asyncio.ensure_future(waiting)
            self._callback.add_done_callback(lambda _: self._on_callback_done(step))
            self._arm_receipt()

    def _finish(self, step: CallbackStep) -> None:
        match step:
            case Assign():
                pass
            case Revoke(partitions):
                self.membership.finish_revoke(partitions)
            case Lose(partitions):
                self.membership.finish_lose(partitions)
            case Inform(_, _, generation):
                self.membership.finish_inform(generation)
            case _:
                assert_never(step)

    def _on_callback_done(self, step: CallbackStep) -> None:
        self._callback = None
        self._finish(step)
        self._advance()

    async def _call(self, step: CallbackStep) -> None:
        """As the last thing that the application does; ``stop_callback`` ends it."""
        waiting = self._callbacks.call(step)
        if waiting is not None:
            self._callback = asyncio.ensure_future(waiting)
            await asyncio.wait((self._callback,))
            self._callback = None

    def _rejoin(self) -> None:
        """Back into the group, as nobody; or out of it for good."""
        if self.failure is None and not self._options.rejoin:
            self.failure = MemberLost("the member was fenced or has expired")
        if self.failure is not None:
            self.membership.leave()
            return
        self.membership.status = Status.JOINING
        if self._stream is not None:
            self._join(self._stream)

    async def _leave(self) -> None:
        """What does not arrive is made up for by the end of the session, which others wait for."""
        is_answered = False
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_TIMEOUT_S):
                while not (is_answered := await self._leave_on_stream()):
                    if not self.client.is_restarting:
                        break
                    await self.wait_for_change()
        if not is_answered:
            _LOG.warning("leave_unanswered group=%s member=%s", self.group_id, self.member_id)

    async def _leave_on_stream(self) -> bool:
        """Whether the server has answered that."""
        if self._stream is None:
            return False
        self._left = self._loop.create_future()
        self._send_leave(self._stream)
        return await self._left

    # --------------------------------------------------------------------------------- sending

    def _join(self, stream: Stream) -> None:
        """Sends a Join. Where the application cannot say what belongs there, this member is out."""
        try:
            self._send_join(stream)
        except CallbackFailed as failure:
            _LOG.error("join_failed group=%s", self.group_id, exc_info=failure)
            self.leave_at_once(failure)

    def _send_join(self, stream: Stream) -> None:
        membership, options = self.membership, self._options
        # It asks the application, which may raise: before anything has changed.
        local_assignors = self._computing.encode_assignors()
        join = group_pb2.Join(
            member_epoch=membership.member_epoch,
            rebalance_timeout_ms=options.rebalance_timeout_ms,
            subscription=group_pb2.Subscription(
                subscribed_topic_names=options.topics,
                subscribed_topic_regex=options.topic_regex,
            ),
            owned=encode_partitions(membership.owned),
            server_assignor=options.server_assignor,
            rack_id=options.rack_id,
            client_id=options.client_id,
            instance_id=options.instance_id,
            local_assignors=local_assignors,
            incarnation=self._incarnation,
        )
        # Who is asked is so by what comes after the answer.
        self._computing.stop()
        self._lease.settle(stream.sent)
        self._lease.note_join_sent(read_clock())
        join.join_id = membership.begin_join()
        self._joined_on = stream
        self._send(stream, join=join)

    def _leave_behind_nobody(self) -> None:
        """Leaves where the stream may have the member, also where its own lease is over."""
        if self._stream is not None and self._joined_on is self._stream:
            self._send_leave(self._stream)

    def _send_leave(self, stream: Stream) -> None:
        self._joined_on = None
        epoch = _LEAVE_EPOCH if self.leaves_for_good else _STATIC_LEAVE_EPOCH
        leave = group_pb2.Leave(member_epoch=epoch, instance_id=self._options.instance_id)
        self._send(stream, leave=leave)

    def _send(
        self,
        stream: Stream,
        *,
        join: group_pb2.Join | None = None,
        acknowledge: group_pb2.Acknowledge | None = None,
        leave: group_pb2.Leave | None = None,
        prepare: assignors_pb2.PrepareAssignment | None = None,
        install: assignors_pb2.InstallAssignment | None = None,
    ) -> None:
        stream.send(
            group_pb2.MemberAction(
                group_id=self.group_id,
                member_id=self.member_id,
                join=join,
                acknowledge=acknowledge,
                leave=leave,
                prepare_assignment=prepare,
                install_assignment=install,
            )
        )

    def _send_of_assignment(
        self,
        *,
        prepare: assignors_pb2.PrepareAssignment | None = None,
        install: assignors_pb2.InstallAssignment | None = None,
    ) -> None:
        if self._stream is not None:
            self._send(self._stream, prepare=prepare, install=install)

    def _arm_receipt(self) -> None:
        """A callback may take long: the server must know that its word has come, or it waits."""
        if self._receipt is None:
            self._receipt = self._loop.call_later(_RECEIPT_DELAY_S, self._send_receipt)

    def _send_receipt(self) -> None:
        self._receipt = None
        membership = self.membership
        is_due = (
            self._callback is not None
            and membership.status is Status.MEMBER
            and membership.assignment_id != membership.acknowledged_id
        )
        if is_due and self._stream is not None:
            message = membership.compute_acknowledge(is_final=False)
            self._send(self._stream, acknowledge=message)

    def _arm_retry(self) -> None:
        if self._retry is None:
            self._retry = self._loop.call_later(_RETRY_DELAY_S, self._on_retry)

    def _on_retry(self) -> None:
        self._retry = None
        membership = self.membership
        if self._stream is None or membership.status not in (Status.JOINING, Status.MEMBER):
            return
        if membership.is_answered:
            membership.acknowledged_id = 0
            self._advance()
        else:
            self._join(self._stream)

    def _notify(self) -> None:
        self._changed.set()
        self._changed.clear()
