"""What the doors see of the runtime: submit a command, watch a member, keep a member alive.

A door (the Kafka wire, gRPC) decodes, limits, authenticates and asks the ``Authorizer``; then it
submits a frozen command and gets its answer once everything that the answer shows is durable.
All of this is called on the event loop, from one thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from coordinator.runtime.targets.client_assignments import LocalAssignments
from model.commands import Command, OffsetCommit
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import GroupError
from model.ids import GroupId, LogPartition, MemberId
from model.log.commit_records import OffsetColumns
from model.responses import Response
from model.topics import Topic, TopicImage

Answer: TypeAlias = Response | GroupError
Release: TypeAlias = Callable[[], None]
Reply: TypeAlias = Callable[[Answer], None]
"""Called exactly once, on the loop, never before ``submit`` returns for a command that writes."""


def ignore_answer(answer: Answer) -> None:
    """The reply of the coordinator's own commands."""


def set_answer(waiting: asyncio.Future[Answer], answer: Answer) -> None:
    """The reply of who waits for it, or has given up."""
    if not waiting.done():
        waiting.set_result(answer)


async def await_answer(submit: Callable[[Reply], None]) -> Response:
    """What is submitted is answered with. Raises the ``GroupError`` that is the answer."""
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    submit(partial(set_answer, future))
    answer = await future
    if isinstance(answer, GroupError):
        try:
            raise answer.with_traceback(None)
        finally:
            # It would hold the frames that it was raised in, there and here.
            del answer, future
    return answer


class MemberTicket(Protocol):
    """What makes a repeated heartbeat cheap: valid as long as its answer cannot have changed.

    It dies with anything replayed for the member's group (members, epochs, targets, settings);
    commits do not touch it.
    """

    def touch(self, monotonic_ms: int) -> bool:
        """Note that the member was heard from; ``False``, and nothing noted, once it is dead."""

    def is_valid(self) -> bool:
        """Whether a cached answer still says what the core would say."""


class CommitTicket(Protocol):
    """What makes a repeated commit cheap: the group, the caller and the topic are checked already.

    It dies with anything replayed for the group's members, and with any change of topics.
    """

    def commit(self, offsets: OffsetColumns, monotonic_ms: int, release: Release) -> bool:
        """Commit offsets without metadata; ``release`` is called once, when they are durable.

        ``False``, and nothing done, where they have to be submitted as a command: once the ticket
        is dead, or for a partition that is not there. Of many, ``keys`` are what this ticket named.
        """

    def name_partitions(self, partitions: NDArray[np.int32]) -> list[bytes] | None:
        """The record keys of partitions; ``None`` where one is not there, or is there twice."""


class Coordinator(Protocol):
    """The running coordinator."""

    settings: CoordinatorSettings
    cluster_id: str
    log_partitions: int

    @property
    def image(self) -> TopicImage:
        """The topics, as far as they are durable. Replaced, never changed, on each change."""

    def submit(self, command: Command, reply: Reply) -> None:
        """Handle a command; ``reply`` is called when its records are durable.

        Reads and errors are answered when the flush that covers what they saw is durable, which
        may be at once, within this call.
        """

    async def call(self, command: Command) -> Response:
        """``submit`` for a coroutine. Raises the ``GroupError`` of an error answer."""

    def ticket(self, group_id: GroupId, member_id: MemberId) -> MemberTicket | None:
        """A ticket for a member that is in the group, durably and right now; else ``None``."""

    def commit_ticket(self, command: OffsetCommit) -> CommitTicket | None:
        """A ticket for commits like this one, if it is accepted; ``None`` where there is none.

        For commits to a single topic. It is asked for before the commit is submitted.
        """

    def touch(self, group_id: GroupId, member_id: MemberId) -> bool:
        """Note that a member was heard from other than by a heartbeat (a Pong on its stream).

        ``False`` if there is no such member, or none that is renewed any more: its rebalance
        timeout has passed, and it is put out as soon as it cannot believe any more to be one.
        """

    def has_member(self, group_id: GroupId, member_id: MemberId) -> bool:
        """Whether the group has the member, and it has not left for a while (epoch -2)."""

    def promise_session(self, group_id: GroupId, member_id: MemberId) -> bool:
        """A member on a stream is about to be told its session timeout, and counts on it.

        ``False`` where ``touch`` is: it must not be told.
        """

    def watch(
        self,
        group_id: GroupId,
        member_id: MemberId,
        on_news: Callable[[], None],
        speaker: int = 0,
        on_dropped: Callable[[], None] = ...,
    ) -> Watch:
        """Call ``on_news`` once, as soon as a heartbeat of this member would say something new.

        Something new: a next step towards the target, or that the member is gone. Called on the
        loop after the change is durable, in slices for large groups; at once, before returning,
        where there is news already. The door then submits a heartbeat of the member and passes
        the answer on. One watch a member, over all doors: when a newer one is registered, or the
        member says anything by another connection or stream (``Watches.hear``), ``on_dropped`` is
        called instead, within that call: nobody must speak for the member from there any more.
        Members of one ``speaker`` are told one after another.
        """

    @property
    def local_assignments(self) -> LocalAssignments:
        """Where members are offered that can compute the assignments of their groups."""

    def on_topics_changed(self, callback: Callable[[Sequence[Topic]], None]) -> None:
        """Call after each durable change of the image, on the loop, with the topics that are gone.

        Whoever compared images would look at all topics for each that comes or goes.
        """

    def ready(self) -> bool:
        """Whether all shards are loaded and commands are served."""

    def is_serving(self) -> bool:
        """Whether the topics are there and commands are taken.

        A command of a group that is still being loaded is answered COORDINATOR_LOAD_IN_PROGRESS.
        """

    def settings_of(self, group_id: GroupId) -> CoordinatorSettings:
        """The settings that are in force for a group."""

    def partition_of(self, group_id: GroupId) -> LogPartition:
        """The log partition, and shard, of a group."""

    async def stop(self) -> None:
        """Refuse new commands with COORDINATOR_NOT_AVAILABLE, flush, answer what was accepted."""


class Watch(Protocol):
    """A registered watch."""

    def cancel(self) -> None:
        """Forget it; does nothing after ``on_news`` was called."""
