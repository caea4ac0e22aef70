"""A member of a classic group of any protocol type."""

from __future__ import annotations

from collections.abc import Mapping

from muster.classic.classic_base import (
    HEARTBEAT_INTERVAL_MS,
    JOIN_TIMEOUT_MS,
    METADATA_REFRESH_MS,
    REBALANCE_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    ClassicBase,
)
from muster.classic.classic_engine import ClassicEngine
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
from muster.credentials import Credentials, Tls
from muster.partitions import OffsetAndMetadata, TopicPartition


class ClassicWorker(ClassicBase):
    """A member of a group of any protocol type, for example to elect a writer or share out tasks.

    ``protocols`` are names in order of preference, each with this member's metadata: bytes, or a
    function that is called at each join. The leader's ``assign`` gets the ``Generation`` with all
    members and their metadata, and returns the assignment of each member id as bytes; members that
    it leaves out get none. If it raises ``AssignmentFailed``, all members get that error, and the
    group rebalances. A commit counts for the generation in which it was made. Callbacks may be
    functions or coroutine functions:

    - ``on_assignment``: these bytes are the member's assignment in this generation.
    - ``on_revoked``: the member must stop with its assignment. Called before each join unless
      ``keeps`` is set; then an assignment is valid until the next one.
    - ``on_lost``: another member may have it already (this one was fenced or has expired).
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
        tls: Tls | None = None,
        credentials: Credentials | None = None,
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
        super().__init__(
            target, group_id, options, join_timeout_ms, tls=tls, credentials=credentials
        )
        self._protocol = WorkerProtocol(
            protocol_type, protocols, assign, on_assignment, on_revoked, on_lost, keeps=keeps
        )

    @property
    def assignment(self) -> bytes | None:
        """The assignment, or ``None`` if there is none or the lease has ended by its own clock."""
        engine = self._engine
        return self._protocol.held if engine is not None and engine.holds else None

    def poll(self) -> bytes | None:
        """Return the assignment. Raises ``CallbackFailed``, or why the member is out for good."""
        self._raise_failure()
        return self.assignment

    async def _commit(
        self, engine: ClassicEngine, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
    ) -> None:
        await commit_offsets(engine, None, offsets)

    def _make_protocol(self, client: Client) -> GroupProtocol:
        return self._protocol

    def _raise_kept(self) -> None:
        super()._raise_kept()
        if self._protocol.kept:
            raise self._protocol.kept.pop(0)
