"""What a front end sees of the runtime: submit a command, watch a member, keep a member alive.

A front end (the Kafka listener, gRPC) decodes, limits, authenticates and asks the ``Authorizer``.
It then submits a frozen command and gets the response once everything the response shows is
durable. All calls are made on the event loop, from one thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from types import TracebackType
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coordinator.runtime.targets.client_assignments import ClientAssignments
from model.commands.command import Command
from model.commands.offsets import OffsetCommit
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, LogPartition, MemberId, TopicName
from model.log.commit_records import OffsetColumns
from model.places import GroupPlace
from model.responses.response import Response
from model.topics import Topic, TopicImage

Answer: TypeAlias = Response | GroupError
Reply: TypeAlias = Callable[[Answer], None]
"""Called exactly once, on the loop; never before ``submit`` returns for a command that writes."""


class Release(Protocol):
    """Answers a repeated commit; called exactly once, on the loop, after ``commit`` returned."""

    def __call__(self, error: ErrorCode = ErrorCode.NONE, /) -> None:
        """The commit is durable; or it has failed with this error, for each of its partitions."""


def ignore_answer(answer: Answer) -> None:
    """The reply of the coordinator's own commands."""


def set_answer(waiting: asyncio.Future[Answer], answer: Answer) -> None:
    """Complete a future, unless its waiter has given up."""
    if not waiting.done():
        waiting.set_result(answer)


async def await_answer(submit: Callable[[Reply], None]) -> Response:
    """Submit and await the response. Raises the ``GroupError`` of an error response."""
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    submit(partial(set_answer, future))
    answer = await future
    if isinstance(answer, GroupError):
        try:
            raise answer.with_traceback(None)
        finally:
            # The traceback would keep the frames of both the raiser and this coroutine alive.
            del answer, future
    return answer


class MemberTicket(Protocol):
    """Makes a repeated heartbeat cheap: valid as long as its response cannot have changed.

    Any record replayed for the member's group (members, epochs, target, configs) invalidates it;
    offset commits do not.
    """

    def touch(self, monotonic_ms: int) -> bool:
        """Renew the member's session; ``False``, without renewing, once the ticket is invalid."""

    def is_valid(self) -> bool:
        """Whether the core would still give the cached response."""


class CommitTicket(Protocol):
    """Makes a repeated commit cheap: the group, the caller and the topic are already checked.

    Any record replayed for the group's members, and any topic change, invalidates it.
    """

    def commit(self, offsets: OffsetColumns, monotonic_ms: int, release: Release) -> bool:
        """Commit offsets without metadata; ``release`` is called once, when they are durable.

        Offsets that are kept elsewhere may fail there; ``release`` then gets the error.
        Returns ``False``, without committing, if the offsets must be submitted as a command: the
        ticket is invalid, or a partition does not exist. The ``keys`` of several offsets must come
        from ``name_partitions`` of this ticket.
        """

    def permits(self, partition: int) -> bool:
        """Whether ``commit`` would take this partition, for offsets that are kept elsewhere.

        The group is in the same place as before. The caller's session is renewed as by a commit;
        nothing is written.
        """

    def name_partitions(self, partitions: NDArray[np.int32]) -> list[bytes] | None:
        """The record keys of partitions; ``None`` if one does not exist or is named twice."""


class Coordinator(Protocol):
    """The running coordinator."""

    settings: CoordinatorSettings
    cluster_id: str
    log_partitions: int

    @property
    def image(self) -> TopicImage:
        """The durable topic image. Each change replaces it; no image is ever modified."""

    def submit(self, command: Command, reply: Reply) -> None:
        """Handle a command; ``reply`` is called when its records are durable.

        A read or an error is answered when the flush that covers what it saw is durable, which may
        be immediately, within this call.
        """

    async def call(self, command: Command) -> Response:
        """``submit`` for a coroutine. Raises the ``GroupError`` of an error response."""

    def ticket(self, group_id: GroupId, member_id: MemberId) -> MemberTicket | None:
        """A ticket for a member whose membership is durable and current; else ``None``."""

    def commit_ticket(self, command: OffsetCommit) -> CommitTicket | None:
        """A ticket for commits like this one, if it is accepted; else ``None``.

        Only for commits to a single topic. Ask before submitting the commit.
        """

    def touch(self, group_id: GroupId, member_id: MemberId) -> bool:
        """Renew a member's session for a sign of life that is no heartbeat (a Pong on its stream).

        Returns ``False`` if the group has no such member, or if its session can no longer be
        renewed: its rebalance timeout has passed, and the coordinator removes it once the last
        session timeout sent to it has run out.
        """

    def has_member(self, group_id: GroupId, member_id: MemberId) -> bool:
        """Whether the group has the member, not counting static members at epoch -2."""

    def holds_member(self, group_id: GroupId, member_id: MemberId) -> bool:
        """Whether a group of either protocol has the member, also one that has not joined yet."""

    def holds_group(self, group_id: GroupId) -> bool:
        """Whether the group exists, if only by its offsets."""

    def place_of(self, group_id: GroupId) -> GroupPlace | None:
        """Where the group is; ``None`` if it is in the cluster that Muster stands in front of.

        Always ``None`` for a Muster that does not. Known before the group is loaded.
        """

    def find_subscribed_names(
        self, group_id: GroupId, member_id: MemberId
    ) -> Collection[TopicName]:
        """The topics that a member of a consumer group subscribes to by name; empty if unknown."""

    def promise_session(self, group_id: GroupId, member_id: MemberId) -> bool:
        """Note that a streaming member is about to be sent its session timeout and will rely on it.

        Returns ``False`` where ``touch`` does; the timeout must then not be sent.
        """

    def watch(
        self,
        group_id: GroupId,
        member_id: MemberId,
        on_change: Callable[[], None],
        speaker: int = 0,
        on_dropped: Callable[[], None] = ...,
    ) -> Watch:
        """Call ``on_change`` once, as soon as a heartbeat of this member would return a change.

        A change is a next step towards the target, or that the member is gone. ``on_change`` is
        called on the loop after the change is durable (in chunks for large groups), or before this
        method returns if a change is already pending. The front end then submits a heartbeat of the
        member and passes the response on. A member has one watch across all front ends. When a
        newer one is registered, or the member sends anything over another connection or stream
        (``Watches.hear``), ``on_dropped`` is called instead, within that call: this session must no
        longer act for the member. Members that share a session (``speaker``) are notified one after
        another.
        """

    def changes_of(self, group_id: GroupId) -> GroupChanges:
        """The changes of a group, whether it exists or not: see ``group_notices``."""

    @property
    def client_assignments(self) -> ClientAssignments:
        """Where front ends offer members that can compute their group's assignment."""

    def on_topics_changed(self, callback: Callable[[Sequence[Topic]], None]) -> None:
        """Register a callback for each durable image change; it gets the deleted topics.

        It runs on the loop. Comparing images instead would cost a pass over all topics per change.
        """

    def ready(self) -> bool:
        """Whether all shards are loaded and commands are served."""

    def is_serving(self) -> bool:
        """Whether the topics are loaded and commands are accepted.

        Commands for a group that is still loading get COORDINATOR_LOAD_IN_PROGRESS.
        """

    def settings_of(self, group_id: GroupId) -> CoordinatorSettings:
        """The configs in force for a group."""

    def partition_of(self, group_id: GroupId) -> LogPartition:
        """The log partition, and thus the shard, of a group."""

    async def stop(self) -> None:
        """Refuse new commands with COORDINATOR_NOT_AVAILABLE, flush, answer what was accepted."""


class GroupChanges(Protocol):
    """The changes of one group, from ``__enter__`` to ``__exit__``.

    Changes that nobody has waited for are one: a slow reader reads once, and nothing queues up.
    """

    @property
    def group_id(self) -> GroupId: ...

    def __enter__(self) -> GroupChanges: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    async def wait(self) -> None:
        """Wait until the group has changed since the last ``wait``, or since ``__enter__``."""

    def tell(self) -> None:
        """End a wait, as if the group had changed."""


class Watch(Protocol):
    """A registered watch."""

    def cancel(self) -> None:
        """Remove the watch; has no effect after ``on_change`` was called."""
