"""What classic members of both kinds have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import Final

from muster.classic.classic_engine import ClassicEngine
from muster.classic.classic_options import ClassicOptions
from muster.classic.classic_protocol import NO_GENERATION, GroupProtocol
from muster.connection.client import Client
from muster.connection.shared_clients import CALLERS_MAX, acquire_shared_client
from muster.credentials import Credentials, Tls
from muster.member_base import MemberBase

SESSION_TIMEOUT_MS: Final = 45_000
REBALANCE_TIMEOUT_MS: Final = 300_000
HEARTBEAT_INTERVAL_MS: Final = 3_000
METADATA_REFRESH_MS: Final = 30_000
JOIN_TIMEOUT_MS: Final = 60_000


class ClassicBase(MemberBase[ClassicEngine]):
    """A member of a classic group; subclasses bring the protocol type."""

    def __init__(
        self,
        target: str | Client,
        group_id: str,
        options: ClassicOptions,
        join_timeout_ms: int,
        *,
        tls: Tls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        super().__init__(
            target,
            group_id,
            join_timeout_ms,
            options.rebalance_timeout_ms,
            tls=tls,
            credentials=credentials,
        )
        self._options = options

    @property
    def member_id(self) -> str:
        """The id that the coordinator has generated; empty before the first join."""
        return "" if self._engine is None else self._engine.member_id

    @property
    def generation(self) -> int:
        """The generation of the group that the member is in, or -1."""
        return NO_GENERATION if self._engine is None else self._engine.generation

    @property
    def is_leader(self) -> bool:
        """Whether this member leads the group's current generation."""
        return self._engine is not None and self._engine.membership.is_leader

    def rejoin(self, reason: str = "") -> None:
        """Make the group rebalance, because this member's metadata has changed."""
        self._running().rejoin(reason or "the application asks for it")

    @abstractmethod
    def _make_protocol(self, client: Client) -> GroupProtocol:
        """The protocol of the members of this class."""

    def _acquire_client(self, target: str) -> Client:
        return acquire_shared_client(target, CALLERS_MAX, self._access)

    def _make_engine(self, client: Client) -> ClassicEngine:
        return ClassicEngine(client, self.group_id, self._make_protocol(client), self._options)

    def _raise_kept(self) -> None:
        engine = self._engine
        if engine is not None and engine.kept:
            raise engine.kept.pop(0)

    def _raise_failure(self) -> None:
        engine = self._running()
        self._raise_kept()
        if engine.failure is not None:
            raise engine.failure

    async def _detach(self, engine: ClassicEngine) -> None:
        engine.detach()
        await engine.leave_behind()
