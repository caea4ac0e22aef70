"""A member of a classic group of any protocol type."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from muster.classic.classic_base import (
    HEARTBEAT_INTERVAL_MS,
    JOIN_TIMEOUT_MS,
    METADATA_REFRESH_MS,
    REBALANCE_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    ClassicBase,
)
from muster.classic.classic_offsets import commit_offsets
from muster.classic.classic_options import make_options
from muster.classic.classic_protocol import GroupProtocol
from muster.classic.classic_worker_protocol import (
    Assign,
    Metadata,
    OnAssignment,
    OnEnd,
    WorkerProtocol,
)
from muster.connection.client import Client
from muster.partitions import OffsetAndMetadata, TopicPartition


class ClassicWorker(ClassicBase):
    """A member of a group of any protocol type: who writes, who runs which task, and the like.

    ``protocols`` are names, the preferred one first, with what this member says for each: bytes,
    or a function that is asked at each join. The member that the coordinator elects is asked to
    ``assign``: it gets the ``Generation`` with all members and what they said, and returns the
    bytes of each member by its id; who is left out gets none. ``AssignmentFailed`` tells all why
    that cannot be, and the group tries again. Callbacks, functions or coroutine functions:

    - ``on_assignment``: these bytes are the member's in this generation.
    - ``on_revoked``: the member must stop with what these bytes mean. Called before each join
      unless ``keeps`` is set; then an assignment holds until the next one.
    - ``on_lost``: somebody may do it already (the member was fenced or has expired).
    """

    def __init__(
        self,
        target: str | Client,
        group_id: str,
        *,
        protocol_type: str,
        protocols: Mapping[str, Metadata],
        assign: Assign,
        on_assignment: OnAssignment | None = None,
        on_revoked: OnEnd | None = None,
        on_lost: OnEnd | None = None,
        keeps: bool = False,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
        heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS,
        join_timeout_ms: int = JOIN_TIMEOUT_MS,
        client_id: str = "",
        instance_id: str = "",
        rejoin: bool = True,
    ) -> None:
        options = make_options(
            session_timeout_ms,
            rebalance_timeout_ms,
            heartbeat_interval_ms,
            METADATA_REFRESH_MS,
            client_id,
            instance_id,
            rejoin=rejoin,
        )
        super().__init__(target, group_id, options, join_timeout_ms)
        self._protocol = WorkerProtocol(
            protocol_type, protocols, assign, on_assignment, on_revoked, on_lost, keeps=keeps
        )

    @property
    def assignment(self) -> bytes | None:
        """What the member is assigned at this moment, by its own clock too; ``None``: nothing."""
        engine = self._engine
        return self._protocol.held if engine is not None and engine.holds else None

    def poll(self) -> bytes | None:
        """The assignment. Raises ``CallbackFailed``, or why the member is out for good."""
        self._raise_failure()
        return self.assignment

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout_ms: int = 30_000,
    ) -> None:
        """Commits offsets as a member of this generation; returns when they are durable.

        Raises ``CommitFailed``, ``MemberLost``, ``TimeoutError``, and ``CallbackFailed``.
        """
        engine = self._running()
        self._raise_kept()
        async with asyncio.timeout(timeout_ms / 1000):
            await commit_offsets(engine, None, offsets)

    def _make_protocol(self, client: Client) -> GroupProtocol:
        return self._protocol

    def _raise_kept(self) -> None:
        super()._raise_kept()
        if self._protocol.kept:
            raise self._protocol.kept.pop(0)
