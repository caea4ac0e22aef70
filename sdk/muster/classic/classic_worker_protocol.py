"""Any protocol type: metadata and assignments are the application's."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from muster.callbacks import running_callback
from muster.classic.classic_protocol import Generation
from muster.connection.unary import is_cancelled, raise_failures
from muster.errors import CallbackFailed

_LOG = logging.getLogger("muster")

Metadata: TypeAlias = bytes | Callable[[], bytes]
Assign: TypeAlias = Callable[[Generation], Mapping[str, bytes] | Awaitable[Mapping[str, bytes]]]
OnAssignment: TypeAlias = Callable[[bytes, Generation], Awaitable[None] | None]
OnEnd: TypeAlias = Callable[[bytes], Awaitable[None] | None]


class WorkerProtocol:
    """Calls the application, and keeps what it raises until the application asks."""

    def __init__(
        self,
        protocol_type: str,
        protocols: Mapping[str, Metadata],
        assign: Assign,
        on_assignment: OnAssignment | None,
        on_revoked: OnEnd | None,
        on_lost: OnEnd | None,
        *,
        keeps: bool,
    ) -> None:
        self.protocol_type = protocol_type
        self.protocols = dict(protocols)
        self.held: bytes | None = None
        self.kept: list[CallbackFailed] = []
        self._assign = assign
        self._on_assignment = on_assignment
        self._on_revoked = on_revoked
        self._on_lost = on_lost
        self._keeps = keeps
        self._running = ""

    @property
    def caller(self) -> object:
        """The owner of the member's callbacks: see ``is_in_callback``."""
        return self

    def note_late(self, timeout_ms: int) -> None:
        """See ``GroupProtocol``."""
        if self._running:
            message = f"{self._running} was cancelled: it did not return within {timeout_ms} ms"
            _LOG.error("callback_cancelled callback=%s timeout_ms=%d", self._running, timeout_ms)
            self.kept.append(CallbackFailed(message))

    def make_protocols(self) -> Sequence[tuple[str, bytes]]:
        """Metadata given as a function are computed at each join."""
        return [
            (name, metadata if isinstance(metadata, bytes) else metadata())
            for name, metadata in self.protocols.items()
        ]

    async def prepare_join(self) -> bool:
        """Revoke the assignment, unless it may be kept."""
        if not self._keeps:
            await self.give_up()
        return self._keeps

    async def assign(self, generation: Generation) -> Mapping[str, bytes]:
        """Call ``assign`` of the application; what it raises is sent to the group."""
        assigned = self._assign(generation)
        return await assigned if inspect.isawaitable(assigned) else assigned

    async def note_skipped(self, generation: Generation) -> None:
        """Nothing to do: the application watches its own resources."""

    def gives_up(self, assignment: bytes) -> bool:
        """Only the application can read the bytes, so any other assignment may."""
        return self.held not in (None, assignment)

    async def take(
        self, generation: Generation, assignment: bytes, holds: Callable[[], bool]
    ) -> bool:
        """Call ``on_assignment``, also for the same assignment in a new generation."""
        if not holds():
            return False
        self.held = assignment
        await self._call("on_assignment", self._on_assignment, assignment, generation)
        return False

    async def is_outdated(self) -> bool:
        """Never: the application calls ``rejoin``."""
        return False

    async def give_up(self) -> None:
        """Call ``on_revoked``, if there is an assignment."""
        held = self.held
        if held is not None:
            await self._call("on_revoked", self._on_revoked, held)
        self.held = None

    async def lose(self) -> None:
        """Call ``on_lost``, if there is an assignment."""
        held, self.held = self.held, None
        if held is not None:
            await self._call("on_lost", self._on_lost, held)

    async def _call(self, name: str, callback: Callable[..., Any] | None, *values: object) -> None:
        if callback is None:
            return
        self._running = name
        try:
            with running_callback(self):
                result = callback(*values)
                if inspect.isawaitable(result):
                    await raise_failures(result)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and is_cancelled():
                raise
            _LOG.error("callback_failed callback=%s", name, exc_info=error)
            failure = CallbackFailed(f"{name} raised {type(error).__name__}: {error}")
            failure.__cause__ = error
            self.kept.append(failure)
        finally:
            self._running = ""
