"""Computes the assignment of a group on this member: asked, it prepares, computes and installs.

If the stream breaks meanwhile, the computation is dropped: the server asks again, this member or
another one.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from muster.client_assignor import (
    Assigned,
    Assignor,
    Group,
    decode_group,
    encode_assignor,
    encode_computed,
)
from muster.connection.unary import call_in_thread, raise_failures
from muster.errors import CallbackFailed
from muster.v1 import assignors_pb2, group_pb2

_LOG = logging.getLogger("muster")
_PREDECESSOR_S: Final = 1.0
"""How long a new call waits for an outdated one in the thread before it fails."""


class Send(Protocol):
    """Sends an action of the member, if it is on a stream."""

    def __call__(
        self,
        *,
        prepare: assignors_pb2.PrepareAssignment | None = None,
        install: assignors_pb2.InstallAssignment | None = None,
    ) -> None: ...


class Computing:
    """Runs the assignors of a member. ``epoch`` returns its present member epoch."""

    def __init__(
        self, group_id: str, assignors: Sequence[Assignor], send: Send, epoch: Callable[[], int]
    ) -> None:
        self.reason = 0
        """The reason to send with the metadata of each assignor, if not 0."""
        self._group_id = group_id
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._send = send
        self._epoch = epoch
        self._is_busy = False
        self._is_asked = False
        self._task: asyncio.Task[None] | None = None
        self._thread: asyncio.Future[Assigned] | None = None

    def encode_assignors(self) -> list[assignors_pb2.ClientAssignor]:
        """Encode the assignors for a Join, in order of preference. Raises ``CallbackFailed``."""
        return [self._encode(assignor) for assignor in self._assignors.values()]

    def find(self, name: str) -> Assignor | None:
        """The assignor of that name."""
        return self._assignors.get(name)

    def stop(self) -> None:
        """Drop the computation: the member joins again, was lost, or is closed."""
        self._is_busy = self._is_asked = False
        task, self._task = self._task, None
        if task is not None:
            task.cancel()

    def on_update(self, update: group_pb2.MemberUpdate) -> None:
        """Handle an update that concerns a computation."""
        match update.WhichOneof("update"):
            case "compute_assignment":
                self._is_asked = True
                if self._task is not None and not self._task.done():
                    # The running computation is outdated.
                    self._task.cancel()
                    self._is_busy, self._task = False, None
                self._begin()
            case "prepared_assignment":
                self._on_prepared(update.prepared_assignment)
            case "installed_assignment":
                self._on_installed(update.installed_assignment)

    def _encode(self, assignor: Assignor) -> assignors_pb2.ClientAssignor:
        try:
            return encode_assignor(assignor, self.reason)
        except (Exception, asyncio.CancelledError) as error:
            kind = type(error).__name__
            message = f"metadata of assignor {assignor.name!r} raised {kind}: {error}"
            raise CallbackFailed(message) from error

    def _begin(self) -> None:
        if self._is_asked and not self._is_busy:
            self._is_asked, self._is_busy = False, True
            message = assignors_pb2.PrepareAssignment(member_epoch=self._epoch())
            self._send(prepare=message)

    def _finish(self) -> None:
        self._is_busy, self._task = False, None
        self._begin()

    def _on_prepared(self, prepared: assignors_pb2.PreparedAssignment) -> None:
        if not self._is_busy or self._task is not None:
            return
        if prepared.HasField("error") or self._is_asked:
            # The server has asked another member, or the group has changed.
            self._finish()
            return
        self._task = asyncio.ensure_future(self._compute(prepared))

    async def _compute(self, prepared: assignors_pb2.PreparedAssignment) -> None:
        install = assignors_pb2.InstallAssignment(group_epoch=prepared.group_epoch)
        try:
            assigned = await self._assign(prepared)
            topic_ids = {topic.topic_name: topic.topic_id for topic in prepared.topics}
            install.members.extend(encode_computed(assigned, topic_ids))
        except Exception as error:  # noqa: BLE001 - the server computes instead
            _LOG.error("assign_failed group=%s", self._group_id, exc_info=error)
            install.failure = f"{type(error).__name__}: {error}"
        install.member_epoch = self._epoch()
        self._send(install=install)

    async def _assign(self, prepared: assignors_pb2.PreparedAssignment) -> Assigned:
        assign: Callable[[Group], Any] = self._assignors[prepared.assignor].assign
        group = decode_group(self._group_id, prepared)
        if inspect.iscoroutinefunction(assign):
            assigned: Assigned = await raise_failures(assign(group))
            return assigned
        if self._thread is not None:
            # A function that never returns must not take up a thread per call, nor delay the group.
            await asyncio.wait((self._thread,), timeout=_PREDECESSOR_S)
            if not self._thread.done():
                raise RuntimeError("assign has not returned since an earlier generation")
        self._thread = call_in_thread(assign, group)
        return await raise_failures(asyncio.shield(self._thread))

    def _on_installed(self, installed: assignors_pb2.InstalledAssignment) -> None:
        if not self._is_busy:
            return
        if installed.HasField("error"):
            _LOG.warning(
                "assignment_refused group=%s generation=%d reason=%s %s",
                self._group_id,
                installed.group_epoch,
                installed.error.reason,
                installed.error.error_message,
            )
        self._finish()
