"""The runtime as the door sees it, with a checker around each call: S11, L2, and tickets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from coordinator.dispatch.handle import handle
from coordinator.runtime.api import Answer, CommitTicket, MemberTicket, Release, Reply
from model.caller import Caller
from model.commands.classic import JoinGroup, SyncGroup
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupHeartbeat
from model.commands.offsets import OffsetCommit
from model.errors import ErrorCode, GroupError
from model.ids import GroupId, MemberId
from model.log.commit_records import OffsetColumns
from model.now import Now
from model.responses.consumer import ConsumerGroupHeartbeatResponse
from model.responses.offsets import OffsetCommitResponse, PartitionResult, TopicResult
from tests.sim.checkers.observed import ObservedRuntime
from tests.sim.checkers.violations import check
from tests.sim.cluster.door import AnswerChecker
from tests.sim.cluster.process import ServerProcess

ANSWERED_MS = 2_000
WAITING = (JoinGroup, SyncGroup)
"""What waits for other members."""


class CheckedTicket:
    """A ticket that is held against the core each time it is used."""

    def __init__(
        self, coordinator: CheckedCoordinator, ticket: MemberTicket, key: tuple[GroupId, MemberId]
    ) -> None:
        self._coordinator = coordinator
        self._ticket = ticket
        self._key = key
        self._epoch = coordinator.member_epoch(key)

    def is_valid(self) -> bool:
        return self._ticket.is_valid()

    def touch(self, monotonic_ms: int) -> bool:
        if not self._ticket.touch(monotonic_ms):
            return False
        self._coordinator.check_quiet(self._key, self._epoch)
        return True


class CheckedCommitTicket:
    """A ticket for commits whose answers are held against the disk, as all answers are."""

    def __init__(
        self, coordinator: CheckedCoordinator, ticket: CommitTicket, command: OffsetCommit
    ) -> None:
        self._coordinator = coordinator
        self._ticket = ticket
        self._command = command

    def commit(self, offsets: OffsetColumns, monotonic_ms: int, release: Release) -> bool:
        (topic,) = self._command.topics
        command = replace(self._command, topics=(replace(topic, offsets=offsets),))
        end = self._coordinator.begin_commit(command)

        def on_durable(error: ErrorCode = ErrorCode.NONE) -> None:
            assert not error, "offsets are kept here"
            end(_all_accepted(command))
            release()

        is_taken = self._ticket.commit(offsets, monotonic_ms, on_durable)
        if not is_taken:
            end(GroupError("not by a ticket"))
        return is_taken

    def permits(self, partition: int) -> bool:
        """Offsets are kept here."""
        raise AssertionError

    def name_partitions(self, partitions: Any) -> None:
        """Commits of many partitions go the long way here."""
        return


class CheckedCoordinator:
    """``Coordinator`` over one process's runtime."""

    def __init__(
        self, process: ServerProcess, runtime: ObservedRuntime, checker: AnswerChecker
    ) -> None:
        self._process = process
        self._runtime = runtime
        self._checker = checker
        self._unanswered: dict[int, tuple[Command, int]] = {}
        self._submitted = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def submit(self, command: Command, reply: Reply) -> None:
        """Submit, and check the answer when it goes out."""
        begun = self._checker.begin(command, self._runtime)
        number = self._submitted = self._submitted + 1
        self._unanswered[number] = command, self._process.monotonic_ms()

        def checked(answer: Answer) -> None:
            is_first = self._unanswered.pop(number, None) is not None
            check(is_first, "L2", lambda: f"{command} was answered twice")
            self._checker.end(command, begun, answer)
            reply(answer)

        self._runtime.submit(command, checked)

    def check_answered(self) -> None:
        """L2: whatever was submitted is answered, unless it waits for other members."""
        now_ms = self._process.monotonic_ms()
        waiting = [
            command
            for command, taken_ms in self._unanswered.values()
            if now_ms - taken_ms > ANSWERED_MS and not isinstance(command, WAITING)
        ]
        check(not waiting, "L2", lambda: f"these wait for an answer: {waiting}")

    # --------------------------------------------------------------------------------- tickets

    def member_epoch(self, key: tuple[GroupId, MemberId]) -> int:
        group = self._runtime.shard_of(key[0]).consumer_groups.get(key[0])
        member = None if group is None else group.member(key[1])
        return -1 if member is None else member.member_epoch

    def ticket(self, group_id: GroupId, member_id: MemberId) -> MemberTicket | None:
        ticket = self._runtime.ticket(group_id, member_id)
        return None if ticket is None else CheckedTicket(self, ticket, (group_id, member_id))

    def check_quiet(self, key: tuple[GroupId, MemberId], epoch: int) -> None:
        """While a ticket lives the core has nothing new to say to its member."""
        group_id, member_id = key
        process = self._process
        self._runtime.lively.heard_ms[key] = process.monotonic_ms()
        heartbeat = self._make_heartbeat(group_id, member_id, epoch)
        now = Now(process.wall_ms(), process.monotonic_ms())
        try:
            outcome = handle(self._runtime.shard_of(group_id), heartbeat, now)
        except GroupError as error:
            check(False, "ticket", f"{key} was answered from the cache, but the core says {error}")
            raise
        said = outcome.response
        is_quiet = (
            isinstance(said, ConsumerGroupHeartbeatResponse)
            and not said.has_changes
            and said.member_epoch == epoch
            and not outcome.records
        )
        check(is_quiet, "ticket", lambda: f"{key} at {epoch}: the core says {outcome}")

    def _make_heartbeat(
        self, group_id: GroupId, member_id: MemberId, epoch: int
    ) -> ConsumerGroupHeartbeat:
        """One that says nothing but that the member is there."""
        group = self._runtime.shard_of(group_id).consumer_groups[group_id]
        member = group.member(member_id)
        assert member is not None, "its ticket lives"
        known = member.metadata
        assert known is not None, "it has joined"
        caller = Caller("User:ANONYMOUS", known.client_id, known.client_host)
        return ConsumerGroupHeartbeat(
            caller, group_id, member_id, epoch, instance_id=known.instance_id
        )

    def commit_ticket(self, command: OffsetCommit) -> CommitTicket | None:
        ticket = self._runtime.commit_ticket(command)
        return None if ticket is None else CheckedCommitTicket(self, ticket, command)

    def begin_commit(self, command: OffsetCommit) -> Callable[[Answer], None]:
        """The ticket is about to take a commit; what is returned is called with its answer."""
        begun = self._checker.begin(command, self._runtime)
        return partial(self._checker.end, command, begun)


def _all_accepted(command: OffsetCommit) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        tuple(
            TopicResult(
                topic.name,
                topic.topic_id,
                tuple(PartitionResult(number, ErrorCode.NONE) for number in topic.partitions),
            )
            for topic in command.topics
        )
    )
