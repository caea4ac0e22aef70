"""What classic members of both kinds have: their engine, their client, their end."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final, Self

from muster.arguments import check_int, check_ms, check_text
from muster.changes import wait_until_joined
from muster.classic.classic_engine import ClassicEngine, Phase
from muster.classic.classic_options import ClassicOptions
from muster.classic.classic_protocol import NO_GENERATION, GroupProtocol
from muster.connection.client import Client
from muster.connection.shared_clients import (
    CALLERS_MAX,
    acquire_shared_client,
    release_shared_client,
)
from muster.connection.stream import FINISH_S
from muster.errors import JoinTimeout, MemberLost, MusterError

SESSION_TIMEOUT_MS: Final = 45_000


REBALANCE_TIMEOUT_MS: Final = 300_000


HEARTBEAT_INTERVAL_MS: Final = 3_000


METADATA_REFRESH_MS: Final = 30_000


JOIN_TIMEOUT_MS: Final = 60_000


class ClassicBase:
    """What all members of classic groups have: joining, leaving, and who leads."""

    def __init__(
        self, target: str | Client, group_id: str, options: ClassicOptions, join_timeout_ms: int
    ) -> None:
        self.group_id = check_text("group_id", group_id)
        self._target = target if isinstance(target, Client) else check_text("target", target)
        self._options = options
        self._join_timeout_ms = check_ms("join_timeout_ms", join_timeout_ms)
        self._engine: ClassicEngine | None = None
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

    @property
    def member_id(self) -> str:
        """As the coordinator made it; empty before the first join."""
        return "" if self._engine is None else self._engine.member_id

    @property
    def generation(self) -> int:
        """The generation of the group that the member is in; -1 for none."""
        return NO_GENERATION if self._engine is None else self._engine.generation

    @property
    def is_leader(self) -> bool:
        """Whether this member assigns in the group's current generation."""
        return self._engine is not None and self._engine.is_leader

    def rejoin(self, reason: str = "") -> None:
        """Has the group rebalance, for this member has something new to say."""
        self._running().rejoin(reason or "the application asks for it")

    async def join(self) -> None:
        """Joins the group; returns when the member has its first assignment.

        ``async with`` does this, and ``close``. Raises ``JoinRefused`` or ``JoinTimeout``.
        """
        if self._engine is not None:
            raise MusterError("a member joins once: make another one")
        target = self._target
        if isinstance(target, Client):
            client = target
        else:
            client = acquire_shared_client(target, CALLERS_MAX)
        try:
            protocol = self._make_protocol(client)
        except BaseException:
            await self._release(client)
            raise
        engine = self._engine = ClassicEngine(client, self.group_id, protocol, self._options)
        try:
            engine.start()
            await wait_until_joined(
                engine,
                lambda: engine.phase is Phase.MEMBER,
                lambda: self._is_closing,
                self._join_timeout_ms,
            )
            # In the next turn of the loop: callbacks may use what our caller is about to bind.
            asyncio.get_running_loop().call_soon(engine.begin)
        except TimeoutError:
            await self._abandon(engine)
            raise JoinTimeout(
                f"cannot join group {self.group_id!r} at {client.target}: "
                f"{engine.trouble or 'others have not joined'}"
            ) from None
        except BaseException:
            if not self._is_closing:
                await self._abandon(engine)
            raise

    async def close(self, *, for_good: bool = False, timeout_ms: int | None = None) -> None:
        """Gives everything up and leaves the group. Closing twice does nothing.

        It takes ``timeout_ms`` at most, by default ``rebalance_timeout_ms``: a callback that runs
        still is then cancelled, and a ``CallbackFailed`` says so on leaving the block. Nobody gets
        what the member had before a cancelled callback has ended, or the lease of the member.
        A static member stays in its group until its session ends, so that it may come back;
        ``for_good``: it leaves too. A callback, and what it awaits, cannot close its own member.
        """
        limit_ms = self._options.rebalance_timeout_ms
        if timeout_ms is not None:
            limit_ms = check_int("timeout_ms", timeout_ms, 0)
        engine = self._engine
        if engine is None or self._is_closing:
            return
        if engine.is_in_callback:
            raise MusterError("a callback cannot close its own member")
        self._is_closing = True
        leaves = for_good or not self._options.instance_id
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await engine.give_up()
                if leaves and engine.member_id:
                    await engine.leave()
        except TimeoutError:
            engine.protocol.note_late(limit_ms)
        finally:
            await self._abandon(engine, leaves=leaves)

    def _make_protocol(self, client: Client) -> GroupProtocol:
        raise NotImplementedError

    def _raise_kept(self) -> None:
        engine = self._engine
        if engine is not None and engine.kept:
            raise engine.kept.pop(0)

    def _raise_failure(self) -> None:
        engine = self._running()
        self._raise_kept()
        if engine.failure is not None:
            raise engine.failure

    async def _abandon(self, engine: ClassicEngine, *, leaves: bool | None = None) -> None:
        if self._is_abandoned:
            # Its share of the connection is given back once: the next one is another member's.
            return
        self._is_abandoned = True
        if leaves is None:
            leaves = not self._options.instance_id
        await engine.stop_callback()
        self._is_closing = self._is_closed = True
        engine.detach()
        if not engine.has_left and engine.member_id and leaves:
            # A join or a close that was cancelled would leave a member that nobody speaks for.
            await engine.leave(FINISH_S)
        await self._release(engine.client)

    async def _release(self, client: Client) -> None:
        if not isinstance(self._target, Client):
            await release_shared_client(client)

    def _running(self) -> ClassicEngine:
        if self._engine is None or self._is_closed:
            raise MemberLost("the member has not joined, or is closed")
        return self._engine
