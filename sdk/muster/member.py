"""A member of a group: ``async with Member(...)`` joins, and leaving the block leaves the group."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Final

from muster.arguments import check_ms, check_text, check_texts
from muster.callbacks import Callback, Callbacks
from muster.changes import iterate_changes
from muster.client_assignor import Assignor
from muster.connection.client import Client
from muster.connection.lease import read_wall_clock_us
from muster.connection.shared_clients import acquire_shared_client
from muster.credentials import Credentials, Tls
from muster.engine import Engine
from muster.errors import PollIntervalExceeded
from muster.member_base import MemberBase
from muster.member_options import MemberOptions
from muster.membership import Partitions
from muster.offsets import commit_offsets, fetch_offsets
from muster.partitions import OffsetAndMetadata, TopicPartition, make_member_id

_DEFAULT_TIMEOUT_MS: Final = 300_000
_JOIN_TIMEOUT_MS: Final = 30_000
_LONG_JOIN_TIMEOUT_MS: Final = 60_000
"""Longer than ``group.consumer.session.timeout.ms``, which a join may have to wait for."""


class Member(MemberBase[Engine]):
    """A member of ``group_id`` that reads ``topics``, and those that ``topic_regex`` matches.

    The regular expression is RE2's and must match the whole topic name; topics that are created
    later are read too.

    ``target`` is ``host:port``; the members of a process share a connection to it, if they have the
    same ``tls`` (``muster.Tls``) and ``credentials`` (``muster.Basic``, ``muster.Bearer``). Or pass
    a ``Client``. Credentials that the server does not accept raise ``AuthenticationFailed``; a
    token is replaced before it ends, and the member stays what it is.

    Callbacks get the partitions that change hands, one callback at a time, and may be functions or
    coroutine functions:

    - ``on_assigned``: the member owns these from now on.
    - ``on_revoked``: the member must stop with these; nobody gets them before it returns.
    - ``on_lost``: another member may have them already (this one was fenced or has expired).

    If a callback raises, the next ``poll`` or ``commit``, or leaving the block, raises
    ``CallbackFailed``.

    The application calls ``poll`` at least every ``max_poll_interval_ms``; otherwise the member
    leaves the group (``on_lost``) and joins again with the next ``poll``. ``None`` turns that off.
    ``rebalance_timeout_ms`` limits ``on_revoked``, by default to the same time, and also limits
    leaving the block; ``close`` takes another limit. Arguments that do not fit into a message
    raise ``TypeError`` or ``ValueError`` here. A member that was fenced or has expired joins
    again, unless ``rejoin`` is false.

    ``assignors`` are its client-side assignors in order of preference (``muster.Assignor``): if
    all members that bring any have one in common, one of them computes the group's assignment.

    With ``instance_id`` it is a static member: when it closes, its partitions are kept for the next
    member of that id until the session timeout has passed, so that a restart moves nothing. A
    static member that dies sends no Leave: its partitions wait for the end of its session, and
    then go to all members, including the next one of its id. A ``member_id`` is for one member at
    a time as well. A join waits while another member of either id has not left and its session has
    not ended, so ``join_timeout_ms`` is 60,000 with an id, and 30,000 without.
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
        tls: Tls | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        if max_poll_interval_ms is not None:
            check_ms("max_poll_interval_ms", max_poll_interval_ms)
        if rebalance_timeout_ms is None:
            rebalance_timeout_ms = max_poll_interval_ms or _DEFAULT_TIMEOUT_MS
        check_ms("rebalance_timeout_ms", rebalance_timeout_ms)
        if join_timeout_ms is None:
            waits = bool(instance_id or member_id)
            join_timeout_ms = _LONG_JOIN_TIMEOUT_MS if waits else _JOIN_TIMEOUT_MS
        super().__init__(
            target,
            group_id,
            join_timeout_ms,
            rebalance_timeout_ms,
            tls=tls,
            credentials=credentials,
        )
        names = check_texts("topics", topics)
        if not names and not topic_regex:
            raise ValueError("neither topics nor topic_regex: the member would read nothing")
        if member_id is not None:
            check_text("member_id", member_id)
        self._member_id = member_id or make_member_id()
        self._first_join_id = read_wall_clock_us() if member_id else 0
        own = tuple(assignors)
        if not all(isinstance(assignor, Assignor) for assignor in own):
            raise TypeError("assignors must be instances of muster.Assignor")
        self._callbacks = Callbacks(on_assigned, on_revoked, on_lost, own)
        self._max_poll_interval_ms = max_poll_interval_ms
        self._options = MemberOptions(
            topics=names,
            topic_regex=check_text("topic_regex", topic_regex),
            rebalance_timeout_ms=rebalance_timeout_ms,
            server_assignor=check_text("server_assignor", server_assignor),
            rack_id=check_text("rack_id", rack_id),
            client_id=check_text("client_id", client_id),
            instance_id=check_text("instance_id", instance_id),
            rejoin=rejoin,
            assignors=own,
            incarnation=secrets.randbits(62) | 1 if member_id else 0,
        )
        self._watchdog: asyncio.TimerHandle | None = None
        self._polled_at = 0.0

    @property
    def member_id(self) -> str:
        """The present member id; it changes if another client turns out to use the same one."""
        return self._member_id if self._engine is None else self._engine.member_id

    @property
    def epoch(self) -> int:
        """The member epoch; 0 while it is not a member."""
        engine = self._engine
        return engine.membership.member_epoch if engine is not None and engine.holds else 0

    @property
    def assignment(self) -> Partitions:
        """What the member owns now: nothing once its lease has ended by its own clock.

        See ``muster.connection.lease``.
        """
        engine = self._engine
        if engine is None or not engine.holds:
            return frozenset()
        return frozenset(engine.membership.owned)

    @property
    def tokens(self) -> Mapping[TopicPartition, int]:
        """The fencing token of each partition that the member owns now.

        It is greater than every token that the partition had in this group before. Pass it to the
        store that the application writes to, with each write: the store refuses a token that is
        lower than the highest that it has seen for the partition. See docs/fencing.md.
        """
        engine = self._engine
        if engine is None or not engine.holds:
            return {}
        owned, tokens = engine.membership.owned, engine.membership.tokens
        return {partition: tokens[partition] for partition in owned if partition in tokens}

    @property
    def unknown_topics(self) -> frozenset[str]:
        """Those of ``topics`` that do not exist; they are read as soon as they are created."""
        return frozenset() if self._engine is None else self._engine.unknown_topics

    def poll(self) -> Partitions:
        """Report that the application makes progress; returns the assignment.

        Raises ``CallbackFailed``, or the reason why the member is out of its group for good.
        """
        engine = self._running()
        if self._max_poll_interval_ms is not None and self._compute_left_s() <= 0:
            # The watchdog is late if the event loop itself was blocked.
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
        """Yield the assignment now and after each change; of several at once only the last.

        Ends when the member is closed. Raises the reason why the member is out of its group for
        good. It does not replace ``poll``: waiting for a change proves no progress.
        """
        changes = iterate_changes(self._running(), self._find_grants, lambda: self._is_closing)
        async for assignment in changes:
            yield assignment

    def request_assignment(self, reason: int = 1) -> None:
        """Ask for an assignment by client-side assignors, with the metadata that they give now.

        Has no effect if the metadata and ``reason`` (not 0) are unchanged. Raises
        ``CallbackFailed`` if an assignor raises.
        """
        self._running().request_assignment(reason)

    async def fetch_offsets(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: int = 30_000
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Fetch the committed offsets of these partitions, by default of all owned ones.

        ``None`` if nothing is committed. Raises ``MemberLost``, ``TimeoutError``.
        """
        engine = self._running()
        wanted = self.assignment if partitions is None else frozenset(partitions)
        async with asyncio.timeout(timeout_ms / 1000):
            return await fetch_offsets(engine, wanted, self._options.client_id)

    def _acquire_client(self, target: str) -> Client:
        return acquire_shared_client(target, access=self._access)

    def _make_engine(self, client: Client) -> Engine:
        return Engine(
            client,
            self.group_id,
            self._member_id,
            self._options,
            self._callbacks,
            self._first_join_id,
        )

    async def _commit(
        self, engine: Engine, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
    ) -> None:
        await commit_offsets(engine, offsets)

    def _raise_kept(self) -> None:
        self._callbacks.raise_kept()

    def _on_joined(self) -> None:
        # The application could not poll while it waited here, however long that took.
        self._polled_at = asyncio.get_running_loop().time()
        self._start_watchdog()

    def _on_closing(self) -> None:
        # A member that gives up needs no poll: rebalance_timeout_ms limits on_revoked.
        self._stop_watchdog()

    def _find_grants(self) -> Mapping[TopicPartition, int]:
        engine = self._engine
        return engine.membership.grants if engine is not None and engine.holds else {}

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
        """The seconds that are left until the next ``poll`` is due."""
        assert self._max_poll_interval_ms is not None
        idle_s = asyncio.get_running_loop().time() - self._polled_at
        return self._max_poll_interval_ms / 1000 - idle_s

    def _give_up_polling(self, engine: Engine) -> None:
        self._stop_watchdog()
        engine.leave_at_once(
            PollIntervalExceeded(f"poll was not called for {self._max_poll_interval_ms} ms")
        )
