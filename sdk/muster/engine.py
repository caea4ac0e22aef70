"""One member of a consumer group on one connection: what the server sends, and what follows."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Final

from muster.arguments import INT32_MAX, check_int
from muster.callbacks import Callbacks
from muster.commit_order import CommitOrder
from muster.computing import Computing
from muster.connection.client import Client
from muster.connection.lease import read_clock
from muster.connection.stream import Stream
from muster.errors import (
    UNRELEASED_INSTANCE_ID,
    CallbackFailed,
    JoinRefused,
    MemberLost,
    MusterError,
    decode_error,
    find_delay_s,
)
from muster.member_options import MemberOptions
from muster.member_sender import MemberSender
from muster.membership import Lose, Membership, Revoke, Status
from muster.partitions import make_member_id
from muster.reconciliation import Reconciliation
from muster.v1 import group_pb2

_LOG = logging.getLogger("muster")
_RETRY_DELAY_S: Final = 0.1
_LEAVE_TIMEOUT_S: Final = 5.0


class Engine:
    """Drives one member. ``failure`` is why it is out of its group for good."""

    def __init__(
        self,
        client: Client,
        group_id: str,
        member_id: str,
        options: MemberOptions,
        callbacks: Callbacks,
        join_id: int = 0,
    ) -> None:
        """``join_id``: the member's join ids are above it, and so above those of earlier runs."""
        self.client = client
        self.group_id = group_id
        self.membership = Membership(join_id=join_id)
        self.commits = CommitOrder()
        self.failure: MusterError | None = None
        self.unknown_topics: frozenset[str] = frozenset()
        self._refusal: MusterError | None = None
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._sender = MemberSender(group_id, member_id, self.membership, options)
        self._changed = asyncio.Event()
        self._retry: asyncio.TimerHandle | None = None
        self._computing = Computing(
            group_id,
            options.assignors,
            self._sender.send_of_assignment,
            lambda: self.membership.member_epoch,
        )
        self._reconciliation = Reconciliation(
            self.membership, self._sender, callbacks, rejoin=self._rejoin, notify=self._notify
        )

    # --------------------------------------------------------------------- used by the member

    @property
    def member_id(self) -> str:
        """The present id; it changes if another client turns out to use the same one."""
        return self._sender.member_id

    @property
    def is_joined(self) -> bool:
        """Whether the server has accepted the member."""
        return self.membership.status is Status.MEMBER

    @property
    def holds(self) -> bool:
        """Whether the member may act as one now: it has joined, and its lease has not ended."""
        return self._sender.holds

    @property
    def trouble(self) -> str:
        """Why the member has not joined yet, for humans."""
        return self.client.trouble if self._refusal is None else str(self._refusal)

    @property
    def can_ask(self) -> bool:
        """Whether the server knows the member on the open stream."""
        return self.holds and self._sender.stream is not None and self.membership.is_answered

    @property
    def is_leaving(self) -> bool:
        """Whether the member is giving up."""
        return self._reconciliation.is_closing

    @property
    def is_in_callback(self) -> bool:
        """Whether this is called from a callback of the member, or a task that it started."""
        return self._reconciliation.is_in_callback

    def note_late(self, timeout_ms: int) -> None:
        """The callback that runs has exceeded the timeout of ``close``, and will be cancelled."""
        self._reconciliation.note_late(timeout_ms)

    def start(self) -> None:
        """Join as soon as there is a stream."""
        self.membership.status = Status.JOINING
        self.client.enter(self)

    def begin(self) -> None:
        """Callbacks may run from now on."""
        self._reconciliation.begin()

    async def wait_for_change(self) -> None:
        """Return after the next change of anything."""
        await self._changed.wait()

    def leave_at_once(self, failure: MusterError) -> None:
        """Leave without ``on_revoked``: the application does not answer, or has failed."""
        if self.membership.status is Status.OUT:
            return
        self.failure = failure
        self._sender.leave_if_joined()
        self._lose()

    def return_to_group(self) -> None:
        """Join again after ``leave_at_once``."""
        self.failure = None
        self.membership.return_to_group()
        self._reconciliation.advance()

    def request_assignment(self, reason: int) -> None:
        """Send the assignors' metadata again, with the reason for a new assignment."""
        self._computing.reason = check_int("reason", reason, -INT32_MAX - 1)
        stream = self._sender.stream
        if stream is not None and self.membership.status is Status.MEMBER:
            self._send_join(stream)

    async def give_up(self, *, for_good: bool) -> None:
        """Let the application finish, then leave. Nothing else happens to the member afterwards."""
        self._sender.leaves_for_good |= for_good
        self._reconciliation.is_closing = True
        self.client.resume()
        self._notify()
        await self._reconciliation.finish()
        if self.holds:
            revoked = frozenset(self.membership.owned)
            if revoked:
                await self._reconciliation.call_last(Revoke(revoked))
                self.membership.finish_revoke(revoked)
        if self.membership.status in (Status.MEMBER, Status.JOINING):
            # A Join in flight would leave an abandoned member in the group.
            await self._leave()
        self.membership.lose()
        if self.membership.lost:
            await self._reconciliation.call_last(Lose(frozenset(self.membership.lost)))
        self.membership.leave()

    async def stop_callback(self) -> None:
        """Cancel the callback that runs, and wait for its end: it may still use the partitions."""
        await self._reconciliation.stop(self._sender.compute_lease_deadline())

    def detach(self) -> None:
        """Forget everything, and leave the group if the stream can still carry a Leave.

        After a cancelled join or close the stream would otherwise renew the abandoned member for
        as long as other members use it.
        """
        self._reconciliation.is_closing = True
        self._sender.leave_if_joined()
        self.membership.leave()
        self._computing.stop()
        if self._retry is not None:
            self._retry.cancel()
        self._reconciliation.detach()
        self.client.leave(self)
        self._notify()

    # ------------------------------------------------------------------ called by the connection

    def on_stream(self, stream: Stream) -> None:
        """A stream is open: join, or resume, on it."""
        self._sender.open(stream)
        self.check_lease(read_clock())
        if self.membership.status in (Status.JOINING, Status.MEMBER):
            self._join(stream)
        self._notify()

    def on_stream_lost(self, stream: Stream) -> None:
        """The stream broke; the member stays one until its lease ends."""
        self._sender.on_stream_lost(stream)
        self._notify()

    def on_update(self, update: group_pb2.MemberUpdate, stream: Stream) -> None:
        """The server has sent the member an update."""
        kind = update.WhichOneof("update")
        if kind == "left":
            self._sender.on_left()
        elif update.join_id != self.membership.join_id:
            # The server sent it before it handled our last Join.
            return
        elif kind == "assignment":
            self._on_assignment(update, stream)
        elif kind == "fenced":
            self._on_fenced(update.fenced)
        elif kind == "refused":
            self._on_refused(update.refused, stream)
        elif self._sender.stream is stream and self.membership.status is Status.MEMBER:
            self._computing.on_update(update)

    def check_lease(self, now: float) -> float | None:
        """Lose the partitions if the lease has ended; return when to check again, if ever."""
        if self.membership.status is not Status.MEMBER:
            return None
        deadline = self._sender.compute_lease_deadline()
        if now < deadline:
            return deadline
        _LOG.warning("member_expired group=%s member=%s", self.group_id, self.member_id)
        self._sender.leave_if_joined()
        self._lose()
        return None

    # --------------------------------------------------------------------------------- updates

    def _on_assignment(self, update: group_pb2.MemberUpdate, stream: Stream) -> None:
        assignment = update.assignment
        is_answer = not self.membership.is_answered
        self._note_unknown(frozenset(assignment.unknown_topics))
        if not self.membership.handle_assignment(update.join_id, assignment):
            return
        if is_answer:
            self._refusal = None
            self._sender.lease.note_joined(stream.next_sequence, assignment.session_timeout_ms)
            self.client.expect(assignment.heartbeat_interval_ms)
        else:
            self._sender.lease.note_told(assignment.session_timeout_ms)
        deadline = self.check_lease(read_clock())
        if deadline is not None:
            self.client.arm(deadline)
        self._reconciliation.on_assignment()

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
            # Another client uses this id: under different ids both can be members.
            old = self.member_id
            self._sender.change_id(make_member_id())
            self.client.rename(old, self)
        elif self._sender.stream is not None and not self._options.instance_id:
            # Other members need not wait for its lease to end, even if a callback still runs.
            self._sender.send_leave(self._sender.stream)
        self._lose()

    def _on_refused(self, refused: group_pb2.Refused, stream: Stream) -> None:
        waits = self._waits_for_its_instance(refused)
        if refused.retriable or waits:
            refusal = decode_error(refused.error)
            if waits and str(refusal) != str(self._refusal):
                # The other member may keep the id for ever, and this one owns nothing meanwhile.
                _LOG.warning("join_waits group=%s reason=%s", self.group_id, refusal)
            self._refusal = refusal
            self._arm_retry(max(find_delay_s(refused.error), _RETRY_DELAY_S))
            if not self.membership.is_answered:
                self._sender.lease.settle(stream.sent)
            return
        self.failure = decode_error(refused.error, JoinRefused)
        # The group may still have the member, and nobody joins or renews it any more.
        self._sender.leave_if_joined()
        if self.membership.status is Status.JOINING:
            self.membership.leave()
            self._notify()
        else:
            self._lose()

    def _waits_for_its_instance(self, refused: group_pb2.Refused) -> bool:
        """Whether the last member of this id has not left: its session will end."""
        is_taken = refused.error.error_code == UNRELEASED_INSTANCE_ID
        return is_taken and self.membership.status is Status.JOINING

    def _lose(self) -> None:
        self._computing.stop()
        self._sender.lease.end()
        self.membership.lose()
        self._reconciliation.advance()

    # ---------------------------------------------------------------------- joining and leaving

    def _rejoin(self) -> None:
        """Join again at epoch 0, or leave the group for good."""
        if self.failure is None and not self._options.rejoin:
            self.failure = MemberLost("the member was fenced or has expired")
        if self.failure is not None:
            self.membership.leave()
            return
        self.membership.status = Status.JOINING
        if self._sender.stream is not None:
            self._join(self._sender.stream)

    def _join(self, stream: Stream) -> None:
        """Send a Join. If an assignor of the application fails to make it, the member leaves."""
        try:
            self._send_join(stream)
        except CallbackFailed as failure:
            _LOG.error("join_failed group=%s", self.group_id, exc_info=failure)
            self.leave_at_once(failure)

    def _send_join(self, stream: Stream) -> None:
        # This calls the application, which may raise: do it before anything changes.
        client_assignors = self._computing.encode_assignors()
        join = self._sender.make_join(client_assignors)
        # The server asks for an assignment again once it has answered this Join.
        self._computing.stop()
        self._sender.send_join(stream, join)

    async def _leave(self) -> None:
        """Leave the group; if the Leave is lost, the group waits for the end of the session."""
        is_answered = False
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_TIMEOUT_S):
                while not (is_answered := await self._sender.leave()):
                    if not self.client.is_restarting:
                        break
                    await self.wait_for_change()
        if not is_answered:
            _LOG.warning("leave_unanswered group=%s member=%s", self.group_id, self.member_id)

    def _arm_retry(self, delay_s: float) -> None:
        if self._retry is None:
            self._retry = self._loop.call_later(delay_s, self._on_retry)

    def _on_retry(self) -> None:
        self._retry = None
        membership, stream = self.membership, self._sender.stream
        if stream is None or membership.status not in (Status.JOINING, Status.MEMBER):
            return
        if membership.is_answered:
            membership.acknowledged_id = 0
            self._reconciliation.advance()
        else:
            self._join(stream)

    def _notify(self) -> None:
        self._changed.set()
        self._changed.clear()
