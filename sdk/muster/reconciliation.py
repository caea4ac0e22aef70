"""Takes the steps of one member's ``Membership``: callbacks, acknowledgements and rejoins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, assert_never

from muster.callbacks import Callbacks, CallbackStep, is_in_callback
from muster.connection.unary import stop
from muster.member_sender import MemberSender
from muster.membership import (
    Acknowledge,
    Assign,
    Inform,
    Lose,
    Membership,
    Rejoin,
    Revoke,
    Status,
    Step,
)

_RECEIPT_DELAY_S: Final = 0.1


class Reconciliation:
    """Runs one callback at a time. ``rejoin`` takes that step, ``notify`` is called after steps.

    ``is_closing``: the member is giving up, and takes no further step.
    """

    def __init__(
        self,
        membership: Membership,
        sender: MemberSender,
        callbacks: Callbacks,
        *,
        rejoin: Callable[[], None],
        notify: Callable[[], None],
    ) -> None:
        self.is_closing = False
        self._membership = membership
        self._sender = sender
        self._callbacks = callbacks
        self._rejoin = rejoin
        self._notify = notify
        self._loop = asyncio.get_running_loop()
        self._callback: asyncio.Future[None] | None = None
        self._receipt: asyncio.TimerHandle | None = None
        self._may_begin = self._is_advancing = False

    @property
    def is_in_callback(self) -> bool:
        """Whether this is called from a callback of the member, or a task that it started."""
        return is_in_callback(self._callbacks)

    def note_late(self, timeout_ms: int) -> None:
        """The callback that runs has exceeded the timeout of ``close``, and will be cancelled."""
        self._callbacks.note_late(timeout_ms)

    def begin(self) -> None:
        """Callbacks may run from now on."""
        self._may_begin = True
        self.advance()

    def on_assignment(self) -> None:
        """The server has sent an assignment."""
        if self._callback is not None:
            self._arm_receipt()
        self.advance()

    def advance(self) -> None:
        """Take steps until none is left, or a callback has to be awaited.

        A plain callback may call back into this: the step that it belongs to is finished first.
        """
        if self._is_advancing:
            return
        self._is_advancing = True
        try:
            while self._callback is None and not self.is_closing:
                step = self._membership.compute_step()
                # A member that is lost while its application still waits in ``join`` must rejoin.
                if not self._may_begin and not isinstance(step, Rejoin):
                    break
                if step is None or not self._take(step):
                    break
        finally:
            self._is_advancing = False
        self._notify()

    def _take(self, step: Step) -> bool:
        """Take the step; ``False`` if it has to wait for a stream."""
        match step:
            case Acknowledge(message):
                if self._sender.stream is None:
                    return False
                self._sender.send(self._sender.stream, acknowledge=message)
                self._membership.acknowledged_id = message.assignment_id
            case Rejoin():
                self._rejoin()
            case Assign() | Revoke() | Lose() | Inform():
                self._begin(step)
            case _:
                assert_never(step)
        return True

    def _begin(self, step: CallbackStep) -> None:
        if isinstance(step, Assign):
            self._membership.begin_assign(step.partitions)
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
                self._membership.finish_revoke(partitions)
            case Lose(partitions):
                self._membership.finish_lose(partitions)
            case Inform(_, _, generation):
                self._membership.finish_inform(generation)
            case _:
                assert_never(step)

    def _on_callback_done(self, step: CallbackStep) -> None:
        self._callback = None
        self._finish(step)
        self.advance()

    # --------------------------------------------------------------------------------- closing

    async def finish(self) -> None:
        """Wait for the callback that runs."""
        if self._callback is not None:
            await asyncio.wait((self._callback,))

    async def call_last(self, step: CallbackStep) -> None:
        """Run one of the last callbacks of a member that gives up; ``stop`` cancels it."""
        waiting = self._callbacks.call(step)
        if waiting is not None:
            self._callback = asyncio.ensure_future(waiting)
            await asyncio.wait((self._callback,))
            self._callback = None

    async def stop(self, deadline: float) -> None:
        """Cancel the callback that runs, and wait until it has ended or the deadline passes."""
        self.is_closing = True
        if self._callback is not None:
            await stop(self._callback, deadline)

    def detach(self) -> None:
        """Cancel what is under way, without waiting."""
        if self._receipt is not None:
            self._receipt.cancel()
        if self._callback is not None:
            self._callback.cancel()

    # ---------------------------------------------------------------------------------- receipts

    def _arm_receipt(self) -> None:
        """Acknowledge receipt if a callback takes long: the server waits for a sign of progress."""
        if self._receipt is None:
            self._receipt = self._loop.call_later(_RECEIPT_DELAY_S, self._send_receipt)

    def _send_receipt(self) -> None:
        self._receipt = None
        membership = self._membership
        is_due = (
            self._callback is not None
            and membership.status is Status.MEMBER
            and membership.assignment_id != membership.acknowledged_id
        )
        if is_due and self._sender.stream is not None:
            message = membership.compute_acknowledge(is_final=False)
            self._sender.send(self._sender.stream, acknowledge=message)
