"""A member of a group: ``async with Member(...)`` joins, and leaving the block leaves the group."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import Final

from muster.arguments import check_int, check_ms, check_text, check_texts
from muster.callbacks import Callback, Callbacks
from muster.changes import iterate_changes, wait_until_joined
from muster.client_assignor import Assignor
from muster.connection.client import Client
from muster.connection.lease import read_wall_clock_us
from muster.connection.shared_clients import acquire_shared_client, release_shared_client
from muster.engine import Engine, MemberOptions
from muster.errors import JoinTimeout, MemberLost, MusterError, PollIntervalExceeded
from muster.membership import Partitions, Status
from muster.offsets import commit_offsets, fetch_offsets
from muster.partitions import OffsetAndMetadata, TopicPartition, make_member_id

_DEFAULT_TIMEOUT_MS: Final = 300_000
_JOIN_TIMEOUT_MS: Final = 30_000
_LONG_JOIN_TIMEOUT_MS: Final = 60_000
"""Longer than ``group.consumer.session.timeout.ms``, for which a join may have to wait."""


class Member:
    """A member of ``group_id`` that reads ``topics``, and those that ``topic_regex`` matches.

    The pattern is RE2's and must match a name from end to end; topics that come later are read
    too.

    ``target`` is ``host:port``; the members of a process share a connection to it. Or pass a
    ``Client``. Callbacks get the partitions that change hands, one callback at a time, and may be
    functions or coroutine functions:

    - ``on_assigned``: the member owns these from now on.
    - ``on_revoked``: the member must stop with these; nobody gets them before it returns.
    - ``on_lost``: somebody may have them already (the member was fenced or has expired).

    What a callback raises comes out of the next ``poll`` or ``commit``, or of leaving the block.

    The application calls ``poll`` at least every ``max_poll_interval_ms``, or the member leaves the
    group by itself (``on_lost``) and joins again with the next ``poll``; ``None`` turns that off.
    ``rebalance_timeout_ms`` is how long ``on_revoked`` may take, by default the same, and how long
    leaving the block takes at most; ``close`` takes another limit. Arguments that no message can
    say are refused here: ``TypeError``, ``ValueError``. A member
    that was fenced or has expired joins again, unless ``rejoin`` is false.

    ``assignors`` are its own, in its order of preference (``muster.Assignor``): where all members
    that bring any have one in common, one of them computes the assignment of the group.

    With ``instance_id`` it is a static member: when it closes, its partitions are kept for the next
    member of that id until the session timeout has passed, so that a restart moves nothing. One
    that dies cannot say that it has stopped: its partitions wait for the end of its session, and
    then go to all members, the next of its id among them. ``member_id`` is for one member at a
    time, too. A join waits while another member of either id has not left and its session has not
    ended, so ``join_timeout_ms`` is 60,000 with an id, and 30,000 without.
    """

    def __init__(
        self,
        target: str | Client,
        group_id: str,
        *,
        topics: Iterable[str] = (),
        topic_regex: str = "",
        on_assigned: Callback | None = None,
        on_revoked: Callback | None = None,
        on_lost: Callback | None = None,
        max_poll_interval_ms: int | None = _DEFAULT_TIMEOUT_MS,
        rebalance_timeout_ms: int | None = None,
        join_timeout_ms: int | None = None,
        server_assignor: str = "",
        assignors: Iterable[Assignor] = (),
        rack_id: str = "",
        client_id: str = "",
        instance_id: str = "",
        member_id: str | None = None,
        rejoin: bool = True,
    ) -> None:
        self.group_id = check_text("group_id", group_id)
        self._target = target if isinstance(target, Client) else check_text("target", target)
        names = check_texts("topics", topics)
        if not names and not topic_regex:
            raise ValueError("neither topics nor topic_regex: the member would read nothing")
        if max_poll_interval_ms is not None:
            check_ms("max_poll_interval_ms", max_poll_interval_ms)
        if rebalance_timeout_ms is None:
            rebalance_timeout_ms = max_poll_interval_ms or _DEFAULT_TIMEOUT_MS
        if member_id is not None:
            check_text("member_id", member_id)
        self._member_id = member_id or make_member_id()
        self._first_join_id = read_wall_clock_us() if member_id else 0
        own = tuple(assignors)
        if not all(isinstance(assignor, Assignor) for assignor in own):
            raise TypeError("assignors are instances of muster.Assignor")
        self._callbacks = Callbacks(on_assigned, on_revoked, on_lost, own)
        self._max_poll_interval_ms = max_poll_interval_ms
        if join_timeout_ms is None:
            waits = bool(instance_id or member_id)
            join_timeout_ms = _LONG_JOIN_TIMEOUT_MS if waits else _JOIN_TIMEOUT_MS
        self._join_timeout_ms = check_ms("join_timeout_ms", join_timeout_ms)
        self._options = MemberOptions(
            topics=names,
            topic_regex=check_text("topic_regex", topic_regex),
            rebalance_timeout_ms=check_ms("rebalance_timeout_ms", rebalance_timeout_ms),
            server_assignor=check_text("server_assignor", server_assignor),
            rack_id=check_text("rack_id", rack_id),
            client_id=check_text("client_id", client_id),
            instance_id=check_text("instance_id", instance_id),
            rejoin=rejoin,
            assignors=own,
            incarnation=secrets.randbits(62) | 1 if member_id else 0,
        )
        self._engine: Engine | None = None
        self._is_closing = False
        self._is_closed = self._is_abandoned = False
        self._watchdog: asyncio.TimerHandle | None = None
        self._polled_at = 0.0

    async def __aenter__(self) -> Member:
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
            self._callbacks.raise_kept()

    @property
    def member_id(self) -> str:
        """Another one after somebody else was found to use the same."""
        return self._member_id if self._engine is None else self._engine.member_id

    @property
    def epoch(self) -> int:
        """The member epoch; 0 while the member is none."""
        engine = self._engine
        return engine.membership.member_epoch if engine is not None and engine.holds else 0

    @property
    def assignment(self) -> Partitions:
        """What the member owns at this moment, by its own clock too: see
        ``muster.connection.lease``.
        """
        engine = self._engine
        if engine is None or not engine.holds:
            return frozenset()
        return frozenset(engine.membership.owned)

    @property
    def unknown_topics(self) -> frozenset[str]:
        """Of ``topics``, those that there are not; they are read as soon as they are created."""
        return frozenset() if self._engine is None else self._engine.unknown_topics

    def poll(self) -> Partitions:
        """Shows that the application makes progress. The assignment.

        Raises ``CallbackFailed``, or why the member is out of its group for good.
        """
        engine = self._running()
        if self._max_poll_interval_ms is not None and self._compute_left_s() <= 0:
            # The watchdog comes too late where the event loop itself was blocked.
            self._give_up_polling(engine)
        self._polled_at = asyncio.get_running_loop().time()
        self._callbacks.raise_kept()
        if isinstance(engine.failure, PollIntervalExceeded) and self._options.rejoin:
            engine.return_to_group()
            self._start_watchdog()
        if engine.failure is not None:
            raise engine.failure
        return self.assignment

    async def changes(self) -> AsyncIterator[Partitions]:
        """The assignment now and after each change; of several changes at once only the last.

        Ends when the member is closed. Raises why the member is out of its group for good. It is
        no ``poll``: to wait for the next change says nothing of how the application gets on.
        """
        changes = iterate_changes(self._running(), self._find_grants, lambda: self._is_closing)
        async for assignment in changes:
            yield assignment

    def request_assignment(self, reason: int = 1) -> None:
        """Asks for an assignment by the member's own assignors, which say anew what they say of it.

        Nothing comes of it where that and ``reason`` (not 0) are as they were. Raises
        ``CallbackFailed`` where an assignor does.
        """
        self._running().request_assignment(reason)

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
        self._callbacks.raise_kept()
        async with asyncio.timeout(timeout_ms / 1000):
            await commit_offsets(engine, offsets)

    async def fetch_offsets(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int = 30_000
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Committed offsets of these partitions, or of all that the member owns.

        ``None`` where nothing is committed. Raises ``MemberLost``, ``TimeoutError``.
        """
        engine = self._running()
        wanted = self.assignment if partitions is None else frozenset(partitions)
        async with asyncio.timeout(timeout_ms / 1000):
            return await fetch_offsets(engine, wanted, self._options.client_id)

    async def join(self) -> None:
        """Joins the group; returns when the server has accepted the member.

        ``async with`` does this, and ``close``. Raises ``JoinRefused`` or ``JoinTimeout``.
        """
        if self._engine is not None:
            raise MusterError("a Member joins once: make another one")
        target = self._target
        client = target if isinstance(target, Client) else acquire_shared_client(target)
        engine = self._engine = Engine(
            client,
            self.group_id,
            self._member_id,
            self._options,
            self._callbacks,
            self._first_join_id,
        )
        try:
            engine.start()
            await wait_until_joined(
                engine,
                lambda: engine.membership.status is Status.MEMBER,
                lambda: self._is_closing,
                self._join_timeout_ms,
            )
            # Who waits here cannot poll, however long it takes.
            self._polled_at = asyncio.get_running_loop().time()
            self._start_watchdog()
            # In the next turn of the loop: callbacks may use what our caller is about to bind.
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

    async def close(self, *, for_good: bool = False, timeout_ms: int | None = None) -> None:
        """Gives everything up (``on_revoked``) and leaves the group. Closing twice does nothing.

        It takes ``timeout_ms`` at most, by default ``rebalance_timeout_ms``: a callback that runs
        still is then cancelled, and a ``CallbackFailed`` says so on leaving the block. Nobody gets
        the partitions before a cancelled callback has ended, or the lease of the member.
        ``for_good``: a static member does not come back, so others get its partitions at once.
        A callback, and what it awaits, cannot close its own member.
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
        # Who gives up needs no poll; rebalance_timeout_ms is what on_revoked may take.
        self._stop_watchdog()
        engine.leaves_for_good |= for_good
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await engine.give_up()
        except TimeoutError:
            self._callbacks.note_late(limit_ms)
        finally:
            await self._abandon(engine)

    async def _abandon(self, engine: Engine) -> None:
        if self._is_abandoned:
            # Its share of the connection is given back once: the next one is another member's.
            return
        self._is_abandoned = True
        await engine.stop_callback()
        self._is_closing = self._is_closed = True
        self._stop_watchdog()
        engine.detach()
        if not isinstance(self._target, Client):
            await release_shared_client(engine.client)

    def _find_grants(self) -> Mapping[TopicPartition, int]:
        engine = self._engine
        return engine.membership.grants if engine is not None and engine.holds else {}

    def _running(self) -> Engine:
        if self._engine is None or self._is_closed:
            raise MemberLost("the member has not joined, or is closed")
        return self._engine

    def _start_watchdog(self) -> None:
        if self._max_poll_interval_ms is not None:
            self._arm_watchdog(self._max_poll_interval_ms / 1000)

    def _stop_watchdog(self) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()

    def _arm_watchdog(self, delay_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._watchdog = loop.call_later(delay_s, self._on_watchdog)

    def _on_watchdog(self) -> None:
        left_s = self._compute_left_s()
        if left_s > 0:
            self._arm_watchdog(left_s)
        else:
            self._give_up_polling(self._running())

    def _compute_left_s(self) -> float:
        """How long the application may go on without a poll."""
        assert self._max_poll_interval_ms is not None
        idle_s = asyncio.get_running_loop().time() - self._polled_at
        return self._max_poll_interval_ms / 1000 - idle_s

    def _give_up_polling(self, engine: Engine) -> None:
        self._stop_watchdog()
        engine.leave_at_once(
            PollIntervalExceeded(f"poll was not called for {self._max_poll_interval_ms} ms")
        )
