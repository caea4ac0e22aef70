"""Members of classic groups: one of them, which the coordinator elects, assigns for all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from muster.arguments import check_int, check_ms, check_text, check_texts
from muster.callbacks import Callback, Callbacks
from muster.changes import iterate_changes, wait_until_joined
from muster.classic.classic_consumer import ConsumerGroupProtocol
from muster.classic.classic_engine import ClassicEngine, Phase
from muster.classic.classic_offsets import commit_offsets, fetch_offsets
from muster.classic.classic_options import ClassicOptions, make_options
from muster.classic.classic_protocol import NO_GENERATION, GroupProtocol
from muster.classic.classic_worker_protocol import (
    Assign,
    Metadata,
    OnAssignment,
    OnEnd,
    WorkerProtocol,
)
from muster.connection.client import (
    CALLERS_MAX,
    Client,
    acquire_shared_client,
    release_shared_client,
)
from muster.connection.stream import FINISH_S
from muster.errors import JoinTimeout, MemberLost, MusterError
from muster.membership import Partitions
from muster.partitions import OffsetAndMetadata, TopicPartition

_SESSION_TIMEOUT_MS: Final = 45_000
_REBALANCE_TIMEOUT_MS: Final = 300_000
_HEARTBEAT_INTERVAL_MS: Final = 3_000
_METADATA_REFRESH_MS: Final = 30_000
_JOIN_TIMEOUT_MS: Final = 60_000


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


class ClassicMember(ClassicBase):
    """A member of the classic group ``group_id`` that reads ``topics`` with Kafka's consumers.

    ``target`` is ``host:port``, or a ``Client``. ``assignors`` are names of
    ``muster.assignors.classic``, the preferred one first: ``range``, ``roundrobin``, ``sticky``,
    ``cooperative-sticky``, ``redundant(n)``; the group takes one that all its members have, and the
    member that leads runs it. Where all named are cooperative, partitions that stay are kept
    through a rebalance (KIP-429); else everything is given up before each. Callbacks, one at a
    time, functions or coroutine functions:

    - ``on_assigned``: the member owns these from now on.
    - ``on_revoked``: the member must stop with these; nobody gets them before it returns, or
      before ``rebalance_timeout_ms`` has passed.
    - ``on_lost``: somebody may have them already (the member was fenced or has expired).

    What a callback raises comes out of the next ``poll`` or ``commit``, or of leaving the block.
    A member that was fenced or has expired joins again, unless ``rejoin`` is false. With
    ``instance_id`` it is a static member, which stays in its group for ``session_timeout_ms`` after
    it has closed. As in Kafka, another member of that id takes its place at once: the one before
    hears of it with its next heartbeat, and is out for good. A leader looks every
    ``metadata_refresh_ms`` whether topics have changed.
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
        session_timeout_ms: int = _SESSION_TIMEOUT_MS,
        rebalance_timeout_ms: int = _REBALANCE_TIMEOUT_MS,
        heartbeat_interval_ms: int = _HEARTBEAT_INTERVAL_MS,
        metadata_refresh_ms: int = _METADATA_REFRESH_MS,
        join_timeout_ms: int = _JOIN_TIMEOUT_MS,
        rack_id: str = "",
        client_id: str = "",
        instance_id: str = "",
        rejoin: bool = True,
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
        super().__init__(target, group_id, options, join_timeout_ms)
        self._topics = check_texts("topics", topics)
        self._assignors = check_texts("assignors", assignors)
        self._rack_id = check_text("rack_id", rack_id)
        self._callbacks = Callbacks(on_assigned, on_revoked, on_lost)
        self._protocol: ConsumerGroupProtocol | None = None

    @property
    def assignment(self) -> Partitions:
        """What the member owns at this moment, by its own clock too: see
        ``muster.connection.lease``.
        """
        engine, protocol = self._engine, self._protocol
        if engine is None or protocol is None or not engine.holds:
            return frozenset()
        return frozenset(protocol.owned)

    @property
    def unknown_topics(self) -> frozenset[str]:
        """Of ``topics``, those that there are not, as far as it knows: who leads looks them up.

        The leader logs those of all members. They are read as soon as they are created.
        """
        protocol = self._protocol
        return frozenset() if protocol is None else protocol.unknown_topics & set(self._topics)

    def poll(self) -> Partitions:
        """The assignment. Raises ``CallbackFailed``, or why the member is out for good."""
        self._raise_failure()
        return self.assignment

    async def changes(self) -> AsyncIterator[Partitions]:
        """The assignment now and after each change; of several changes at once only the last.

        Ends when the member is closed. Raises why the member is out of its group for good.
        """
        changes = iterate_changes(self._running(), self._find_grants, lambda: self._is_closing)
        async for assignment in changes:
            yield assignment

    def subscribe(self, topics: Iterable[str]) -> None:
        """Reads these topics from now on, instead of those before; the group rebalances."""
        names = check_texts("topics", topics)
        self._running()
        assert self._protocol is not None, "it has joined"
        self._protocol.topics = tuple(dict.fromkeys(names))
        self.rejoin("the subscription has changed")

    async def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        *,
        timeout_ms: int = 30_000,
    ) -> None:
        """Commits offsets, those of the next records to read; returns when they are durable.

        Calls for one partition go one after another, so that the last call is the last to count.
        Works in ``on_revoked`` too. Raises ``CommitFailed`` for partitions that the member does
        not own or that were refused, ``MemberLost``, ``TimeoutError``, and ``CallbackFailed``.
        """
        engine = self._running()
        self._raise_kept()
        async with asyncio.timeout(timeout_ms / 1000):
            await commit_offsets(engine, self._find_grants, offsets)

    async def fetch_offsets(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int = 30_000
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Committed offsets of these partitions, or of all that the member owns."""
        engine = self._running()
        wanted = self.assignment if partitions is None else frozenset(partitions)
        async with asyncio.timeout(timeout_ms / 1000):
            return await fetch_offsets(engine, wanted)

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
        session_timeout_ms: int = _SESSION_TIMEOUT_MS,
        rebalance_timeout_ms: int = _REBALANCE_TIMEOUT_MS,
        heartbeat_interval_ms: int = _HEARTBEAT_INTERVAL_MS,
        join_timeout_ms: int = _JOIN_TIMEOUT_MS,
        client_id: str = "",
        instance_id: str = "",
        rejoin: bool = True,
    ) -> None:
        options = make_options(
            session_timeout_ms,
            rebalance_timeout_ms,
            heartbeat_interval_ms,
            _METADATA_REFRESH_MS,
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
