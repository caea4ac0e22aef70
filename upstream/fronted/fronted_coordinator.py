"""The coordinator as clients see it in front of a cluster: what becomes of a command is its place.

A group in the cluster is none of ours: its members are told to find their coordinator, unless one
joins that the cluster cannot serve; then the group is taken over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, assert_never, get_args

from coordinator.runtime.api import (
    CommitTicket,
    Coordinator,
    GroupChanges,
    MemberTicket,
    Reply,
    Watch,
    await_answer,
)
from coordinator.runtime.members.member_watches import ignore_drop
from coordinator.runtime.targets.client_assignments import ClientAssignments
from model.commands.classic import ClassicHeartbeat, JoinGroup, SyncGroup
from model.commands.client_assignment import InstallAssignment, PrepareAssignment
from model.commands.command import Command
from model.commands.consumer import ConsumerGroupHeartbeat, ConsumerGroupLeave, LeaveGroup
from model.commands.freezes import FreezeGroup, ResumeGroup
from model.commands.groups import (
    ConsumerGroupDescribe,
    ConvertToClassicGroup,
    DeleteGroup,
    DescribeGroups,
    ListGroups,
    PlanMigration,
    RemoveMembers,
)
from model.commands.offsets import DeleteOffsets, OffsetCommit, OffsetFetch
from model.commands.resets import ResetOffsets
from model.commands.topics import CreateTopic, DeleteTopic, GrowTopic, SetTopicRacks
from model.commands.transactions import TxnOffsetCommit
from model.configs.coordinator_settings import CoordinatorSettings
from model.errors import (
    CoordinatorLoadInProgress,
    GroupError,
    NotCoordinator,
    PolicyViolation,
    UnknownMemberId,
)
from model.ids import GroupId, LogPartition, MemberId, TopicName
from model.places import GroupPlace, Place, is_here
from model.responses.response import Response
from model.topics import Topic, TopicImage
from upstream.fronted.group_deletions import GroupDeletions
from upstream.fronted.group_lists import describe_groups, list_groups
from upstream.fronted.offset_resets import submit_reset
from upstream.hooks import Takeovers
from upstream.offsets.offsets import Offsets

MemberCommand: TypeAlias = (
    ConsumerGroupHeartbeat
    | ConsumerGroupLeave
    | LeaveGroup
    | JoinGroup
    | SyncGroup
    | ClassicHeartbeat
    | PrepareAssignment
    | InstallAssignment
)
"""What members send."""

GroupAdministration: TypeAlias = (
    PlanMigration | ConvertToClassicGroup | RemoveMembers | FreezeGroup | ResumeGroup
)
"""What concerns a group as it is here."""

OffsetCommand: TypeAlias = OffsetCommit | OffsetFetch | TxnOffsetCommit | DeleteOffsets

_JOIN_EPOCH: Final = 0


class FrontedCoordinator:
    """Implements ``Coordinator`` around a runtime. Each door has one of its own.

    ``for_grpc``: all that joins here can be served by nobody else.
    """

    def __init__(
        self,
        runtime: Coordinator,
        offsets: Offsets,
        takeovers: Takeovers,
        deletions: GroupDeletions,
        *,
        for_grpc: bool = False,
    ) -> None:
        self.settings: CoordinatorSettings = runtime.settings
        self.cluster_id: str = runtime.cluster_id
        self.log_partitions: int = runtime.log_partitions
        self._runtime = runtime
        self._offsets = offsets
        self._takeovers = takeovers
        self._deletions = deletions
        self._for_grpc = for_grpc
        self._routes: Mapping[type, Callable[[Any, Reply], None]] = {
            **dict.fromkeys(get_args(MemberCommand), self._submit_of_member),
            **dict.fromkeys(get_args(OffsetCommand), self._submit_offsets),
            **dict.fromkeys(get_args(GroupAdministration), self._submit_here),
            **dict.fromkeys((CreateTopic, GrowTopic, SetTopicRacks, DeleteTopic), _refuse_topic),
            ListGroups: partial(list_groups, runtime),
            DescribeGroups: partial(describe_groups, runtime),
            ConsumerGroupDescribe: partial(describe_groups, runtime),
            DeleteGroup: self._delete_group,
            ResetOffsets: self._reset_offsets,
        }

    # ----------------------------------------------------------------------------------- commands

    async def call(self, command: Command) -> Response:
        return await await_answer(partial(self.submit, command))

    def submit(self, command: Command, reply: Reply) -> None:
        self._routes.get(type(command), self._runtime.submit)(command, reply)

    def _find_place(self, group_id: GroupId) -> Place:
        """The place of a group; one that a take is asked for is as good as on its way."""
        known = self._runtime.place_of(group_id)
        if known is not None:
            return known.place
        return Place.TAKING if self._takeovers.is_asked_for(group_id) else Place.UPSTREAM

    def _submit_of_member(self, command: MemberCommand, reply: Reply) -> None:
        group_id = command.group_id
        if group_id in self._deletions.running and is_join(command):
            # Nor is it taken over meanwhile: the sentinel has just left it.
            reply(CoordinatorLoadInProgress(f"The group {group_id} is being deleted."))
            return
        match self._find_place(group_id):
            case Place.MUSTER:
                self._runtime.submit(command, reply)
            case Place.RETURNING:
                self._submit_of_returning(command, reply)
            case Place.TAKING:
                self._takeovers.on_the_way.submit(command, reply)
            case Place.UPSTREAM:
                reply(self._refuse_upstream(command))
            case unknown:
                assert_never(unknown)

    def _submit_of_returning(self, command: MemberCommand, reply: Reply) -> None:
        """Members join in the cluster from now on. Whom it cannot serve has to wait."""
        if not is_join(command):
            self._runtime.submit(command, reply)
            return
        group_id = command.group_id
        message = f"The group {group_id} is going back to the cluster."
        if self._is_only_for_muster(command):
            reply(CoordinatorLoadInProgress(message))
            return
        if isinstance(command, JoinGroup) and command.member_id is not None:
            self._takeovers.note_joined(group_id, command.member_id)
        reply(NotCoordinator(message))

    def _refuse_upstream(self, command: MemberCommand) -> GroupError:
        group_id = command.group_id
        if is_join(command) and self._is_only_for_muster(command):
            way = "over gRPC" if self._for_grpc else "with the consumer protocol"
            cause = f"a member joins {way} (client id {command.caller.client_id})"
            self._takeovers.ask_to_take(group_id, cause)
            return CoordinatorLoadInProgress(f"Muster is about to take group {group_id} over.")
        if self._for_grpc:
            # There is no other coordinator to find: the member has to join again.
            return UnknownMemberId(f"The group {group_id} is in the cluster.")
        return _make_elsewhere(group_id)

    def _is_only_for_muster(self, command: MemberCommand) -> bool:
        """Whether the cluster cannot serve who joins."""
        return self._for_grpc or isinstance(command, ConsumerGroupHeartbeat)

    # ------------------------------------------------------------------- offsets, administration

    def _submit_offsets(self, command: OffsetCommand, reply: Reply) -> None:
        group_id = command.group_id
        place = self._find_place(group_id)
        if place is Place.UPSTREAM:
            reply(_make_elsewhere(group_id))
        elif isinstance(command, DeleteOffsets):
            if place is Place.TAKING:
                reply(_make_on_the_way(group_id))
            else:
                self._offsets.delete(command, reply)
        elif place is Place.TAKING:
            self._takeovers.on_the_way.submit(command, reply)
        else:
            self._submit_own_offsets(command, reply)

    def _submit_own_offsets(
        self, command: OffsetCommit | OffsetFetch | TxnOffsetCommit, reply: Reply
    ) -> None:
        match command:
            case OffsetCommit():
                self._offsets.commit(command, reply)
            case OffsetFetch():
                self._offsets.fetch(command, reply)
            case TxnOffsetCommit():
                self._offsets.commit_transaction(command, reply)
            case _:
                assert_never(command)

    def _submit_here(self, command: GroupAdministration, reply: Reply) -> None:
        place = self._find_place(command.group_id)
        if place is Place.UPSTREAM:
            reply(_make_elsewhere(command.group_id))
        elif place is Place.TAKING:
            reply(_make_on_the_way(command.group_id))
        else:
            self._runtime.submit(command, reply)

    def _delete_group(self, command: DeleteGroup, reply: Reply) -> None:
        place = self._find_place(command.group_id)
        if place is Place.UPSTREAM:
            reply(_make_elsewhere(command.group_id))
        elif place is Place.MUSTER:
            self._deletions.submit(command, reply)
        else:
            reply(_make_on_the_way(command.group_id))

    def _reset_offsets(self, command: ResetOffsets, reply: Reply) -> None:
        place = self._find_place(command.group_id)
        if place is Place.UPSTREAM:
            reply(_make_elsewhere(command.group_id))
        elif place is Place.MUSTER:
            submit_reset(self._runtime, self._offsets, command, reply)
        else:
            reply(_make_on_the_way(command.group_id))

    # ------------------------------------------------------------------------ for the front ends

    @property
    def image(self) -> TopicImage:
        return self._runtime.image

    @property
    def client_assignments(self) -> ClientAssignments:
        return self._runtime.client_assignments

    def ticket(self, group_id: GroupId, member_id: MemberId) -> MemberTicket | None:
        if not is_here(self.place_of(group_id)):
            return None
        return self._runtime.ticket(group_id, member_id)

    def commit_ticket(self, command: OffsetCommit) -> CommitTicket | None:
        return self._offsets.ticket(command)

    def touch(self, group_id: GroupId, member_id: MemberId) -> bool:
        return self._runtime.touch(group_id, member_id)

    def has_member(self, group_id: GroupId, member_id: MemberId) -> bool:
        return self._runtime.has_member(group_id, member_id)

    def holds_member(self, group_id: GroupId, member_id: MemberId) -> bool:
        return self._runtime.holds_member(group_id, member_id)

    def holds_group(self, group_id: GroupId) -> bool:
        return is_here(self.place_of(group_id)) or self._runtime.holds_group(group_id)

    def place_of(self, group_id: GroupId) -> GroupPlace | None:
        return self._runtime.place_of(group_id)

    def find_subscribed_names(
        self, group_id: GroupId, member_id: MemberId
    ) -> Collection[TopicName]:
        return self._runtime.find_subscribed_names(group_id, member_id)

    def promise_session(self, group_id: GroupId, member_id: MemberId) -> bool:
        return self._runtime.promise_session(group_id, member_id)

    def watch(
        self,
        group_id: GroupId,
        member_id: MemberId,
        on_change: Callable[[], None],
        speaker: int = 0,
        on_dropped: Callable[[], None] = ignore_drop,
    ) -> Watch:
        return self._runtime.watch(group_id, member_id, on_change, speaker, on_dropped)

    def changes_of(self, group_id: GroupId) -> GroupChanges:
        return self._runtime.changes_of(group_id)

    def on_topics_changed(self, callback: Callable[[Sequence[Topic]], None]) -> None:
        self._runtime.on_topics_changed(callback)

    def ready(self) -> bool:
        return self._runtime.ready()

    def is_serving(self) -> bool:
        return self._runtime.is_serving()

    def settings_of(self, group_id: GroupId) -> CoordinatorSettings:
        return self._runtime.settings_of(group_id)

    def partition_of(self, group_id: GroupId) -> LogPartition:
        return self._runtime.partition_of(group_id)

    async def stop(self) -> None:
        """Answer what waits for the cluster, then stop the runtime."""
        await self._deletions.stop()
        await self._offsets.stop()
        await self._runtime.stop()


def is_join(command: MemberCommand) -> bool:
    """Whether a member joins."""
    if isinstance(command, ConsumerGroupHeartbeat):
        return command.member_epoch == _JOIN_EPOCH
    return isinstance(command, JoinGroup)


def _make_elsewhere(group_id: GroupId) -> NotCoordinator:
    return NotCoordinator(f"The cluster coordinates group {group_id}.")


def _make_on_the_way(group_id: GroupId) -> CoordinatorLoadInProgress:
    return CoordinatorLoadInProgress(f"The group {group_id} is on its way.")


def _refuse_topic(command: object, reply: Reply) -> None:
    reply(PolicyViolation("The topics are the cluster's: change them there."))
