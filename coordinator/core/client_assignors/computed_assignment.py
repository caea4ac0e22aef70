"""Assignments computed by a member: prepare, validate, install.

Source: KIP-848, ConsumerGroupPrepareAssignment and ConsumerGroupInstallAssignment, which Kafka
never shipped. The runtime decides which member is asked, and until when
(``SoftState.client_assignment_requests``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from coordinator.core.state.consumer.client_assignor_state import ClientAssignmentRequest
from coordinator.core.state.consumer.consumer_group import (
    NOBODY,
    ConsumerGroup,
    compute_unknown_member,
)
from coordinator.core.state.consumer.consumer_member import NO_NUMBERS, Member
from coordinator.core.state.outcome import EndClientAssignmentRequest, Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.target.target_assignment import (
    TargetProblem,
    compute_install,
    compute_ordered_members,
    compute_target_problem,
)
from coordinator.core.target.target_install import handle_install_target
from model.client_assignors import (
    CLASSIC_VERSION,
    NO_REASON,
    InstalledMetadataKey,
    InstalledMetadataValue,
)
from model.commands.client_assignment import (
    ClientAssignmentCommand,
    ComputedAssignment,
    InstallAssignment,
    PrepareAssignment,
    PrepareAssignmentResponse,
    PreparedMember,
)
from model.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    IllegalGeneration,
    InvalidRequest,
    StaleMemberEpoch,
)
from model.log.side_records import SideRecord
from model.now import Now
from model.responses.response import Done
from model.topics import Topic
from muster.assignors.legality import find_legal

RAISED = "raised"
JUNK = "junk"
"""Reasons for which a member's assignment is not installed, the same as for other assignors."""


def handle_prepare_assignment(shard: Shard, command: PrepareAssignment) -> Outcome:
    """The input of the client-side assignor, at the group epoch that lacks a target."""
    group, request = check_request(shard, command)
    members = tuple(
        _prepare_member(shard, group, member, request) for member in compute_ordered_members(group)
    )
    by_name = shard.image.by_name
    names = sorted(group.subscribed_topic_names())
    topics: tuple[Topic, ...] = tuple(by_name[name] for name in names if name in by_name)
    return Outcome(
        response=PrepareAssignmentResponse(
            request.group_epoch, request.assignor, request.version, members, topics
        )
    )


def handle_install_assignment(shard: Shard, command: InstallAssignment, now: Now) -> Outcome:
    """Install the assignment and its metadata, in one batch.

    An assignment for another epoch is refused with ILLEGAL_GENERATION; the member computes again
    when it is asked. An illegal one is refused with INVALID_REQUEST, and the server computes the
    target instead.
    """
    group, request = check_request(shard, command)
    group_id, epoch = group.group_id, request.group_epoch
    if command.group_epoch != epoch:
        raise IllegalGeneration(
            f"The assignment was computed for epoch {command.group_epoch}, but group {group_id} is "
            f"at epoch {epoch}."
        )
    if command.failure is not None:
        end = EndClientAssignmentRequest(group_id, epoch, RAISED, command.failure)
        return Outcome(response=Done(), effects=(end,))
    problem = compute_target_problem(shard, group)
    try:
        target = compute_target_of(problem, command.members, request)
    except InvalidRequest as error:
        end = EndClientAssignmentRequest(group_id, epoch, JUNK, error.message)
        return Outcome(response=error, effects=(end,))
    outcome = handle_install_target(shard, compute_install(problem, target), now)
    return replace(
        outcome,
        side=_compute_installed(shard, group, command, request),
        effects=(EndClientAssignmentRequest(group_id, epoch), *outcome.effects),
    )


def check_request(
    shard: Shard, command: ClientAssignmentCommand
) -> tuple[ConsumerGroup, ClientAssignmentRequest]:
    """The group and its pending request; raises an error unless this member is asked to compute."""
    group = shard.consumer_groups.get(command.group_id)
    if group is None:
        raise GroupIdNotFound(f"Consumer group {command.group_id} not found.")
    member = group.member(command.member_id)
    if member is None:
        raise compute_unknown_member(group.group_id, command.member_id)
    _check_epoch(member, command.member_epoch)
    request = shard.soft.client_assignment_requests.get(group.group_id)
    if (
        request is None
        or request.is_given_up
        or request.member_id != member.member_id
        or request.group_epoch != group.group_epoch
        or group.target_epoch >= group.group_epoch
        or group.group_id in shard.freezes
    ):
        raise IllegalGeneration(
            f"Member {member.member_id} is not asked to compute the assignment of group "
            f"{group.group_id} at epoch {group.group_epoch}."
        )
    return group, request


def _check_epoch(member: Member, received: int) -> None:
    """Accept the previous epoch too: the response with the new one may still be on its way."""
    known = member.member_epoch
    message = (
        f"The received member epoch {received} does not match the expected member epoch {known}."
    )
    if received > known:
        raise FencedMemberEpoch(message)
    if received not in (known, member.previous_member_epoch):
        raise StaleMemberEpoch(message)


def _prepare_member(
    shard: Shard, group: ConsumerGroup, member: Member, request: ClientAssignmentRequest
) -> PreparedMember:
    metadata, by_name = member.metadata, shard.image.by_name
    reason, version, said = _get_said(group, member, request.assignor)
    return PreparedMember(
        member.member_id,
        None if metadata is None else metadata.instance_id,
        None if metadata is None else metadata.rack_id,
        tuple(sorted(name for name in group.topics_of(metadata) if name in by_name)),
        reason,
        version,
        said,
        group.numbers.topic_partitions(member.target or NO_NUMBERS),
    )


def _get_said(group: ConsumerGroup, member: Member, assignor: str) -> tuple[int, int, bytes]:
    """Reason, version and metadata of a member for the assignor.

    Those that it declared; for a classic member the metadata of its protocol of the same name, or
    else of its first protocol.
    """
    named = (
        ()
        if group.client_assignor_state is None
        else group.client_assignor_state.assignors.get(member.member_id, ())
    )
    for each in named:
        if each.name == assignor:
            return each.reason, each.version, each.metadata
    protocols = () if member.classic is None else member.classic.supported_protocols
    of_name = [each for each in protocols if each.name == assignor]
    said = (of_name or protocols)[0].metadata if protocols else b""
    return NO_REASON, CLASSIC_VERSION, said


# ------------------------------------------------------------------------------------- validation


def compute_target_of(
    problem: TargetProblem,
    members: tuple[ComputedAssignment, ...],
    request: ClientAssignmentRequest,
) -> npt.NDArray[np.int32]:
    """The index of the member of each partition, or -1 for an unassigned one.

    Raises ``InvalidRequest`` unless each member is in the group and listed once, and each partition
    exists and is assigned to at most one member, which subscribes to its topic.
    """
    starts = problem.problem.topic_start.tolist()
    number_of = {member_id: number for number, member_id in enumerate(problem.member_ids)}
    owners = [NOBODY] * starts[-1]
    for given in members:
        number = number_of.pop(given.member_id, None)
        if number is None:
            raise InvalidRequest(
                f"Member {given.member_id} is not a member of the group, or is listed twice."
            )
        if not CLASSIC_VERSION <= given.version <= request.version:
            raise InvalidRequest(
                f"The metadata for member {given.member_id} has version {given.version}; all "
                f"members support versions up to {request.version}."
            )
        for entry in given.partitions:
            index = problem.index_of.get(entry.topic_id)
            if index is None:
                raise InvalidRequest(f"No member subscribes to topic id {entry.topic_id.hex()}.")
            topic = problem.topics[index]
            for partition in entry.partitions:
                if not 0 <= partition < topic.partitions:
                    raise InvalidRequest(f"Topic {topic.name} has no partition {partition}.")
                place = starts[index] + partition
                if owners[place] != NOBODY:
                    raise InvalidRequest(f"Partition {topic.name}-{partition} is assigned twice.")
                owners[place] = number
    target = np.array(owners, np.int32)
    _check_subscriptions(problem, target)
    return target


def _check_subscriptions(problem: TargetProblem, target: npt.NDArray[np.int32]) -> None:
    wrong = np.flatnonzero((target != NOBODY) & ~find_legal(problem.problem, target))
    if len(wrong):
        place = int(wrong[0])
        starts = problem.problem.topic_start
        index = int(np.searchsorted(starts, place, side="right")) - 1
        member_id = problem.member_ids[int(target[place])]
        raise InvalidRequest(
            f"Member {member_id} does not subscribe to topic {problem.topics[index].name}."
        )


def _compute_installed(
    shard: Shard, group: ConsumerGroup, command: InstallAssignment, request: ClientAssignmentRequest
) -> tuple[SideRecord, ...]:
    """The side records of the metadata for members that declared assignors and classic members."""
    assert group.client_assignor_state is not None, (
        "a member that is asked has declared an assignor"
    )
    named, given = (
        group.client_assignor_state.assignors,
        {each.member_id: each for each in command.members},
    )
    side = []
    for member in group.members():
        found = given.get(member.member_id)
        version = request.version if found is None else found.version
        metadata = b"" if found is None else found.metadata
        if member.member_id in named or (member.classic is not None and metadata):
            key = InstalledMetadataKey(shard.partition, group.group_id, member.member_id)
            value = InstalledMetadataValue(request.group_epoch, request.assignor, version, metadata)
            side.append(SideRecord(key, value))
    return tuple(side)
