"""Takes one member through a classic group: join, sync, stay, and join again.

The member owns its assignment until its lease ends by its own clock, as in
``muster.connection.lease``: the server received a heartbeat or sync that it answered after it was
sent, and renewed the session then. So a lease that runs from the sending ends before the session
does, and before a rebalance of which the server did not know yet can remove the member.
"""

from __future__ import annotations

import asyncio
import logging

from muster.callbacks import is_in_callback
from muster.classic.classic_calls import BACKOFF_MAX_S, BACKOFF_MIN_S, ClassicCalls
from muster.classic.classic_interruption import Closing, Interruption
from muster.classic.classic_membership import ClassicMembership, Lost, Phase
from muster.classic.classic_options import ClassicOptions
from muster.classic.classic_protocol import NO_GENERATION, GroupProtocol
from muster.classic.heartbeat_loop import ClassicHeartbeats
from muster.classic.member_rebalance import ClassicRebalance, JoinAgain
from muster.commit_order import CommitOrder
from muster.connection.client import Client
from muster.connection.stream import FINISH_S
from muster.connection.unary import is_cancelled, stop
from muster.errors import CallbackFailed, MemberLost, MusterError

_LOG = logging.getLogger("muster")


class ClassicEngine:
    """Drives one classic member. ``failure`` is why it is out of its group for good."""

    def __init__(
        self, client: Client, group_id: str, protocol: GroupProtocol, options: ClassicOptions
    ) -> None:
        self.client = client
        self.group_id = group_id
        self.protocol = protocol
        self.options = options
        self.membership = ClassicMembership(options)
        self.commits = CommitOrder()
        self.failure: MusterError | None = None
        self._interruption = Interruption(self.membership)
        self._calls = ClassicCalls(client, group_id, options, self.membership, self._interruption)
        self._rebalance = ClassicRebalance(
            group_id, protocol, options, self.membership, self._calls
        )
        self._heartbeats = ClassicHeartbeats(
            group_id,
            options,
            self.membership,
            self._calls,
            lose=self._lose,
            rejoin=self.rejoin,
        )
        self._wake = asyncio.Event()
        self._begun = asyncio.Event()
        self._changed = asyncio.Event()
        self._main: asyncio.Task[None] | None = None

    # --------------------------------------------------------------------- used by the member

    @property
    def member_id(self) -> str:
        """The id that the coordinator has generated; empty before that."""
        return self.membership.member_id

    @property
    def generation(self) -> int:
        """The generation that the member is in, or -1."""
        return self.membership.generation

    @property
    def is_joined(self) -> bool:
        """Whether the member has an assignment."""
        return self.membership.phase is Phase.MEMBER

    @property
    def holds(self) -> bool:
        """Whether the member owns its assignment now: its lease has not ended by its own clock."""
        return self.membership.holds

    @property
    def trouble(self) -> str:
        """Why the member has not joined yet, for humans."""
        return self._calls.trouble or "other members have not joined"

    @property
    def is_in_callback(self) -> bool:
        """Whether this is called from a callback of the member, or a task that it started."""
        return self._main is asyncio.current_task() or is_in_callback(self.protocol.caller)

    @property
    def kept(self) -> list[CallbackFailed]:
        """What the application raised while it assigned, and has not seen yet."""
        return self._rebalance.kept

    def note_late(self, timeout_ms: int) -> None:
        """The callback that runs has exceeded the timeout of ``close``, and will be cancelled."""
        self.protocol.note_late(timeout_ms)

    def start(self) -> None:
        """Join."""
        self.client.watch(self)
        self.membership.phase = Phase.JOINING
        self._main = asyncio.create_task(self._run())
        self._heartbeats.start()

    def begin(self) -> None:
        """Callbacks may run from now on."""
        self._begun.set()

    async def wait_for_change(self) -> None:
        """Return after the next change of anything."""
        await self._changed.wait()

    def notify(self) -> None:
        """Wake those that wait for a change of the member's state."""
        self._changed.set()
        self._changed.clear()

    def rejoin(self, reason: str) -> None:
        """Join again, so that the group hears what the member says now."""
        self.membership.rejoin_reason = reason
        self._wake.set()

    def leave_at_once(self, failure: MusterError) -> None:
        """The client was closed: the member can no longer reach its group."""
        self.failure = failure
        self._lose(Lost(str(failure), forgets_id=True))

    async def give_up(self, *, for_good: bool) -> None:
        """Let a callback that runs finish, give everything up, and leave.

        A static member stays in its group, unless ``for_good``.
        """
        self.membership.leaves_for_good |= for_good
        self._interruption.close()
        self._begun.set()
        self._wake.set()
        if self._main is not None:
            await asyncio.wait((self._main,))
        end = self.protocol.give_up() if self.holds else self.protocol.lose()
        # The last callback of the application; ``stop_callback`` cancels it.
        self._main = asyncio.ensure_future(end)
        await asyncio.wait((self._main,))
        if self.membership.leaves_for_good and self.member_id:
            await self._calls.leave()

    async def stop_callback(self) -> None:
        """Cancel a callback that runs, and wait for its end: it may still use the assignment."""
        self._interruption.is_closing = True
        if self._main is not None:
            await stop(self._main, self.membership.compute_lease_deadline())

    def detach(self) -> None:
        """Forget everything. The member stays in its group, if it is in it, until it expires."""
        self._interruption.is_closing = True
        self.client.unwatch(self)
        for task in (self._main, self._heartbeats.task):
            if task is not None:
                task.cancel()
        self.membership.drop()
        self.membership.phase = Phase.OUT
        self.notify()

    async def leave_behind(self) -> None:
        """Leave after ``detach``, unless the member has left, or is to stay in its group.

        A cancelled join or close would otherwise leave an abandoned member in the group.
        """
        membership = self.membership
        if not membership.has_left and membership.member_id and membership.leaves_for_good:
            await self._calls.leave(FINISH_S)

    # -------------------------------------------------------------------------------- the loop

    async def _run(self) -> None:
        backoff_s, waits = BACKOFF_MIN_S, False
        try:
            while True:
                try:
                    if waits:
                        waits = False
                        await self._interruption.pause(backoff_s)
                        backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)
                    await self._go_round()
                    backoff_s = BACKOFF_MIN_S
                except Lost as lost:
                    await self._on_lost(lost)
                except JoinAgain as again:
                    waits = again.waits
        except Closing:
            return
        except MusterError as failure:
            self.failure = failure
        except asyncio.CancelledError:
            if is_cancelled():
                raise
            # A callback of the application has awaited something that was cancelled.
            _LOG.error("member_failed group=%s", self.group_id, exc_info=True)
            self.failure = MusterError("the member failed: something it awaited was cancelled")
        except Exception as error:  # noqa: BLE001 - kept, and raised where the application looks
            _LOG.error("member_failed group=%s", self.group_id, exc_info=error)
            self.failure = MusterError(f"the member failed: {type(error).__name__}: {error}")
        finally:
            self.membership.phase = Phase.OUT
            self.notify()
        self.membership.drop()
        await self.protocol.lose()
        self.notify()

    async def _go_round(self) -> None:
        """From one join to the next."""
        membership = self.membership
        if not await self.protocol.prepare_join():
            membership.drop()
        membership.phase = Phase.JOINING
        self._interruption.check_closing()
        generation, skips = await self._rebalance.join()
        membership.phase = Phase.SYNCING
        assignment = await self._rebalance.sync(generation, skips)
        membership.phase = Phase.MEMBER
        self._calls.trouble = ""
        self.notify()
        await self._begun.wait()
        self._interruption.check_closing()
        rejoins = await self.protocol.take(generation, assignment, lambda: self.holds)
        self.notify()
        self._interruption.check_lost()
        if not self.holds:
            # The assignment was not taken, or is no longer held; a heartbeat in flight may still
            # renew the lease, and nobody would read the partitions.
            raise Lost("the session has ended", forgets_id=False)
        if not rejoins:
            await self._stay()

    async def _stay(self) -> None:
        """Return when the member has to join again."""
        membership = self.membership
        while not membership.rejoin_reason:
            self._interruption.check_lost()
            self._interruption.check_closing()
            self._wake.clear()
            try:
                async with asyncio.timeout(self.options.metadata_refresh_ms / 1000):
                    await self._wake.wait()
            except TimeoutError:
                if membership.is_leader and await self.protocol.is_outdated():
                    membership.rejoin_reason = "topics have changed"
        self._interruption.check_lost()

    async def _on_lost(self, lost: Lost) -> None:
        membership = self.membership
        _LOG.warning(
            "member_lost group=%s member=%s reason=%s", self.group_id, membership.member_id, lost
        )
        was_member = membership.has_lease or membership.generation != NO_GENERATION
        membership.drop()
        self._interruption.clear()
        if lost.forgets_id:
            membership.member_id = ""
        self.notify()
        await self.protocol.lose()
        self._interruption.check_closing()
        if self.failure is not None:
            raise self.failure
        if was_member and not self.options.rejoin:
            raise MemberLost(f"the member was fenced or has expired: {lost}")

    def _lose(self, lost: Lost) -> None:
        self._interruption.lose(lost)
        self._wake.set()
        self.notify()
