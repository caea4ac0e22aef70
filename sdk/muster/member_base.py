"""What members of both protocols have in common: how they join, commit, close and fail."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from muster.arguments import check_int, check_ms, check_text
from muster.changes import ChangingEngine, wait_until_joined
from muster.connection.client import Client
from muster.connection.shared_clients import release_shared_client
from muster.credentials import Credentials, Tls, check_access
from muster.errors import JoinTimeout, MemberLost, MusterError
from muster.partitions import OffsetAndMetadata, TopicPartition


class MemberEngine(ChangingEngine, Protocol):
    """What a member needs of the engine of its protocol."""

    client: Client

    @property
    def is_joined(self) -> bool:
        """Whether the server has accepted the member."""

    @property
    def is_in_callback(self) -> bool:
        """Whether this is called from a callback of the member, or a task that it started."""

    @property
    def trouble(self) -> str:
        """Why the member has not joined yet, for humans."""

    def start(self) -> None:
        """Join as soon as there is a connection."""

    def begin(self) -> None:
        """Callbacks may run from now on."""

    def note_late(self, timeout_ms: int) -> None:
        """The callback that runs has exceeded the timeout of ``close``, and will be cancelled."""

    async def give_up(self, *, for_good: bool) -> None:
        """Let the application finish, then leave."""

    async def stop_callback(self) -> None:
        """Cancel the callback that runs, and wait for its end."""

    def detach(self) -> None:
        """Forget everything."""


AnyEngine = TypeVar("AnyEngine", bound=MemberEngine)


class MemberBase(ABC, Generic[AnyEngine]):
    """A member that joins once. ``close_timeout_ms`` is how long ``close`` may take by default."""

    def __init__(
        self,
        target: str | Client,
        group_id: str,
        join_timeout_ms: int,
        close_timeout_ms: int,
        *,
        tls: Tls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self.group_id = check_text("group_id", group_id)
        self._target = target if isinstance(target, Client) else check_text("target", target)
        if not isinstance(target, Client):
            self._access = check_access(target, tls, credentials)
        elif tls is not None or credentials is not None:
            raise ValueError("a Client has tls and credentials of its own: give them to it")
        self._join_timeout_ms = check_ms("join_timeout_ms", join_timeout_ms)
        self._close_timeout_ms = close_timeout_ms
        self._engine: AnyEngine | None = None
        self._is_closing = False
        self._is_closed = self._is_abandoned = False

    async def __aenter__(self) -> Self:
        await self.join()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
        if error is None:
            self._raise_kept()

    async def join(self) -> None:
        """Join the group; returns when the member is in it.

        ``async with`` calls this, and ``close``. Raises ``JoinRefused`` or ``JoinTimeout``.
        """
        if self._engine is not None:
            raise MusterError("a member joins once: create another one")
        target = self._target
        client = target if isinstance(target, Client) else self._acquire_client(target)
        try:
            engine = self._engine = self._make_engine(client)
        except BaseException:
            await self._release(client)
            raise
        try:
            engine.start()
            await wait_until_joined(
                engine,
                lambda: engine.is_joined,
                lambda: self._is_closing,
                self._join_timeout_ms,
            )
            self._on_joined()
            # Not before the next iteration of the event loop: callbacks may use what the caller is
            # about to bind.
            asyncio.get_running_loop().call_soon(engine.begin)
        except TimeoutError:
            await self._abandon(engine)
            raise JoinTimeout(
                f"cannot join group {self.group_id!r} at {client.target}: {engine.trouble}"
            ) from None
        except BaseException:
            if not self._is_closing:
                await self._abandon(engine)
            raise

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout_ms: int = 30_000,
    ) -> None:
        """Commit offsets, those of the next records to read; returns once they are durable.

        Calls for one partition run in order, so the last call determines the committed offset.
        ``on_revoked`` may commit too. Raises ``CommitFailed`` for partitions that the member does
        not own or that were refused, ``MemberLost``, ``TimeoutError``, and ``CallbackFailed``.
        """
        engine = self._running()
        self._raise_kept()
        async with asyncio.timeout(timeout_ms / 1000):
            await self._commit(engine, offsets)

    async def close(self, *, for_good: bool = False, timeout_ms: int | None = None) -> None:
        """Give everything up (``on_revoked``) and leave the group. Closing twice does nothing.

        It takes at most ``timeout_ms``, by default ``rebalance_timeout_ms``: a callback that still
        runs then is cancelled, and leaving the block raises ``CallbackFailed``. Nobody else gets
        what the member had before the cancelled callback or the member's lease has ended.
        A static member stays in its group until its session timeout, so that it may come back;
        with ``for_good`` it leaves at once. A callback, and what it awaits, cannot close its own
        member.
        """
        limit_ms = self._close_timeout_ms
        if timeout_ms is not None:
            limit_ms = check_int("timeout_ms", timeout_ms, 0)
        engine = self._engine
        if engine is None or self._is_closing:
            return
        if engine.is_in_callback:
            raise MusterError("a callback cannot close its own member")
        self._is_closing = True
        self._on_closing()
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await engine.give_up(for_good=for_good)
        except TimeoutError:
            engine.note_late(limit_ms)
        finally:
            await self._abandon(engine)

    # -------------------------------------------------------------------- what protocols provide

    @abstractmethod
    def _acquire_client(self, target: str) -> Client:
        """The client that the member shares with others."""

    @abstractmethod
    def _make_engine(self, client: Client) -> AnyEngine:
        """The engine, not started."""

    @abstractmethod
    async def _commit(
        self, engine: AnyEngine, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
    ) -> None:
        """Commit as the member of this engine."""

    @abstractmethod
    def _raise_kept(self) -> None:
        """Raise the oldest failure of a callback that the application has not seen."""

    def _on_joined(self) -> None:
        """The member has joined."""

    def _on_closing(self) -> None:
        """The member is about to give up; called once more as it is abandoned."""

    async def _detach(self, engine: AnyEngine) -> None:
        """Let go of the engine, before the client is released."""
        engine.detach()

    # ----------------------------------------------------------------------------------- the end

    async def _abandon(self, engine: AnyEngine) -> None:
        if self._is_abandoned:
            # Release the shared client only once: a second release would take another member's use.
            return
        self._is_abandoned = True
        await engine.stop_callback()
        self._is_closing = self._is_closed = True
        self._on_closing()
        await self._detach(engine)
        await self._release(engine.client)

    async def _release(self, client: Client) -> None:
        if not isinstance(self._target, Client):
            await release_shared_client(client)

    def _running(self) -> AnyEngine:
        if self._engine is None or self._is_closed:
            raise MemberLost("the member has not joined, or is closed")
        return self._engine
