"""A member of a classic consumer group; the leader that the coordinator elects assigns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

from muster.arguments import check_text, check_texts
from muster.callbacks import Callback, Callbacks
from muster.changes import iterate_changes
from muster.classic.classic_base import (
    HEARTBEAT_INTERVAL_MS,
    JOIN_TIMEOUT_MS,
    METADATA_REFRESH_MS,
    REBALANCE_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    ClassicBase,
)
from muster.classic.classic_consumer import ConsumerGroupProtocol
from muster.classic.classic_engine import ClassicEngine
from muster.classic.classic_offsets import commit_offsets, fetch_offsets
from muster.classic.classic_options import make_options
from muster.classic.classic_protocol import GroupProtocol
from muster.connection.client import Client
from muster.credentials import Credentials, Tls
from muster.membership import Partitions
from muster.partitions import OffsetAndMetadata, TopicPartition


class ClassicMember(ClassicBase):
    """A member of the classic group ``group_id`` that reads ``topics`` beside Kafka's consumers.

    ``target`` is ``host:port``, or a ``Client``; ``tls`` and ``credentials`` are as in ``Member``.
    ``assignors`` are names of
    ``muster.assignors.classic`` in order of preference: ``range``, ``roundrobin``, ``sticky``,
    ``cooperative-sticky``, ``redundant(n)``; the group selects one that all its members support,
    and the leader runs it. If all of them are cooperative, the member keeps its partitions through
    a rebalance (KIP-429); otherwise it gives everything up before each. Callbacks run one at a
    time, and may be functions or coroutine functions:

    - ``on_assigned``: the member owns these from now on.
    - ``on_revoked``: the member must stop with these; nobody gets them before it returns, or
      before ``rebalance_timeout_ms`` has passed.
    - ``on_lost``: another member may have them already (this one was fenced or has expired).

    If a callback raises, the next ``poll`` or ``commit``, or leaving the block, raises
    ``CallbackFailed``. A member that was fenced or has expired joins again, unless ``rejoin`` is
    false. With ``instance_id`` it is a static member, which stays in its group for
    ``session_timeout_ms`` after it has closed. As in Kafka, another member of that id takes its
    place at once: the old one is fenced at its next heartbeat, and is out for good. A leader
    checks every ``metadata_refresh_ms`` whether topics have changed.
    """

    def __init__(
        self,
        target: str | Client,
        group_id: str,
        *,
        topics: Iterable[str],
        assignors: Sequence[str] = ("range", "cooperative-sticky"),
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
        session_timeout_ms: int = SESSION_TIMEOUT_MS,
        rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS,
        heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS,
        metadata_refresh_ms: int = METADATA_REFRESH_MS,
        join_timeout_ms: int = JOIN_TIMEOUT_MS,
        rack_id: str = "",
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
            metadata_refresh_ms,
            client_id,
            instance_id,
            rejoin=rejoin,
        )
        super().__init__(
            target, group_id, options, join_timeout_ms, tls=tls, credentials=credentials
        )
        self._topics = check_texts("topics", topics)
        self._assignors = check_texts("assignors", assignors)
        self._rack_id = check_text("rack_id", rack_id)
        self._callbacks = Callbacks(on_assigned, on_revoked, on_lost)
        self._protocol: ConsumerGroupProtocol | None = None

    @property
    def assignment(self) -> Partitions:
        """What the member owns now: nothing once its lease has ended by its own clock.

        See ``muster.connection.lease``.
        """
        engine, protocol = self._engine, self._protocol
        if engine is None or protocol is None or not engine.holds:
            return frozenset()
        return frozenset(protocol.owned)

    @property
    def unknown_topics(self) -> frozenset[str]:
        """Those of ``topics`` that do not exist, as of when this member last led its group.

        The leader logs those of all members. They are read as soon as they are created.
        """
        protocol = self._protocol
        return frozenset() if protocol is None else protocol.unknown_topics & set(self._topics)

    def poll(self) -> Partitions:
        """Return the assignment. Raises ``CallbackFailed``, or why the member is out for good."""
        self._raise_failure()
        return self.assignment

    async def changes(self) -> AsyncIterator[Partitions]:
        """Yield the assignment now and after each change; of several at once only the last.

        Ends when the member is closed. Raises the reason why it is out of its group for good.
        """
        changes = iterate_changes(self._running(), self._find_grants, lambda: self._is_closing)
        async for assignment in changes:
            yield assignment

    def subscribe(self, topics: Iterable[str]) -> None:
        """Replace the topics that the member reads; the group rebalances."""
        names = check_texts("topics", topics)
        self._running()
        assert self._protocol is not None, "it has joined"
        self._protocol.topics = tuple(dict.fromkeys(names))
        self.rejoin("the subscription has changed")

    async def fetch_offsets(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int = 30_000
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Fetch the committed offsets of these partitions, by default of all owned ones."""
        engine = self._running()
        wanted = self.assignment if partitions is None else frozenset(partitions)
        async with asyncio.timeout(timeout_ms / 1000):
            return await fetch_offsets(engine, wanted)

    async def _commit(
        self, engine: ClassicEngine, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
    ) -> None:
        await commit_offsets(engine, self._find_grants, offsets)

    def _find_grants(self) -> Mapping[TopicPartition, int]:
        engine, protocol = self._engine, self._protocol
        if engine is None or protocol is None or not engine.holds:
            return {}
        return protocol.grants

    def _make_protocol(self, client: Client) -> GroupProtocol:
        self._protocol = ConsumerGroupProtocol(
            client,
            self.group_id,
            self._topics,
            self._assignors,
            self._rack_id,
            self._callbacks,
        )
        return self._protocol

    def _raise_kept(self) -> None:
        super()._raise_kept()
        self._callbacks.raise_kept()
