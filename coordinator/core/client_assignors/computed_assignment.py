"""A member computes the assignment of its group: prepare, install, and what is refused.

Source: KIP-848, ConsumerGroupPrepareAssignment and ConsumerGroupInstallAssignment, which Kafka
never shipped. Who is asked, and for how long, is the shell's (``SoftState.local_requests``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from coordinator.core.state.client_assignor_state import LocalRequest
from coordinator.core.state.consumer_group import NOBODY, ConsumerGroup, compute_unknown_member
from coordinator.core.state.consumer_member import NO_NUMBERS, Member
from coordinator.core.state.outcome import EndLocalRequest, Outcome
from coordinator.core.state.shard import Shard
from coordinator.core.target.target_assignment import (
    TargetProblem,
    compute_install,
    compute_ordered_members,
    compute_target_problem,
)
from coordinator.core.target.target_install import handle_install_target
from model.commands import Now
from model.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    IllegalGeneration,
    InvalidRequest,
    StaleMemberEpoch,
)
from model.local_assignors import (
    CLASSIC_VERSION,
    NO_REASON,
    InstalledMetadataKey,
    InstalledMetadataValue,
)
from model.local_commands import (
    ComputedAssignment,
    InstallAssignment,
    LocalAssignmentCommand,
    PrepareAssignment,
    PrepareAssignmentResponse,
    PreparedMember,
)
from model.log.side_records import SideRecord
from model.responses import Done
from model.topics import Topic
from muster.assignors.legality import find_legal

RAISED = "raised"
JUNK = "junk"
"""Why a member's assignment is not installed, as for other assignors."""


def handle_prepare_assignment(shard: Shard, command: PrepareAssignment) -> Outcome:
    """All that an assignor is told of its group, at the epoch that lacks a target."""
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
    """The assignment in force from now on, with its metadata, in one batch.

    One of another epoch is refused with ILLEGAL_GENERATION, and the member computes again if it is
    asked. An illegal one is refused with INVALID_REQUEST, and the server computes instead.
    """
    group, request = check_request(shard, command)
    group_id, epoch = group.group_id, request.group_epoch
    if command.group_epoch != epoch:
        raise IllegalGeneration(
            f"The assignment is of epoch {command.group_epoch}, and group {group_id} is at {epoch}."
        )
    if command.failure is not None:
        end = EndLocalRequest(group_id, epoch, RAISED, command.failure)
        return Outcome(response=Done(), effects=(end,))
    problem = compute_target_problem(shard, group)
    try:
        target = compute_target_of(problem, command.members, request)
    except InvalidRequest as error:
        end = EndLocalRequest(group_id, epoch, JUNK, error.message)
        return Outcome(response=error, effects=(end,))
    outcome = handle_install_target(shard, compute_install(problem, target), now)
    return replace(
        outcome,
        side=_compute_installed(shard, group, command, request),
        effects=(EndLocalRequest(group_id, epoch), *outcome.effects),
    )


def check_request(
    shard: Shard, command: LocalAssignmentCommand
) -> tuple[ConsumerGroup, LocalRequest]:
    """The group and what it waits for. Raises for who is no member, and who is not asked."""
    group = shard.consumer_groups.get(command.group_id)
    if group is None:
        raise GroupIdNotFound(f"Consumer group {command.group_id} not found.")
    member = group.member(command.member_id)
    if member is None:
        raise compute_unknown_member(group.group_id, command.member_id)
    _check_epoch(member, command.member_epoch)
    request = shard.soft.local_requests.get(group.group_id)
    if (
        request is None
        or request.is_given_up
        or request.member_id != member.member_id
        or request.group_epoch != group.group_epoch
        or group.target_epoch >= group.group_epoch
    ):
        raise IllegalGeneration(
            f"No assignment of group {group.group_id} at epoch {group.group_epoch} is asked of "
            f"member {member.member_id}."
        )
    return group, request


def _check_epoch(member: Member, received: int) -> None:
    """The answer that brings a new epoch may be on its way: the one before will do."""
    known = member.member_epoch
    if received > known:
        raise FencedMemberEpoch(f"The member is at epoch {known}, and not at {received}.")
    if received not in (known, member.previous_member_epoch):
        raise StaleMemberEpoch(f"The member is at epoch {known}, and not at {received} any more.")


def _prepare_member(
    shard: Shard, group: ConsumerGroup, member: Member, request: LocalRequest
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
    """Reason, version and bytes of a member: its own, or those of its classic subscription.

    A classic member that has a protocol of the assignor's name said those bytes for it.
    """
    named = () if group.local is None else group.local.assignors.get(member.member_id, ())
    for each in named:
        if each.name == assignor:
            return each.reason, each.version, each.metadata
    protocols = () if member.classic is None else member.classic.supported_protocols
    of_name = [each for each in protocols if each.name == assignor]
    said = (of_name or protocols)[0].metadata if protocols else b""
    return NO_REASON, CLASSIC_VERSION, said


# --------------------------------------------------------------------------------- what it brings


def compute_target_of(
    problem: TargetProblem, members: tuple[ComputedAssignment, ...], request: LocalRequest
) -> npt.NDArray[np.int32]:
    """For each partition of the problem its member, or -1. Raises INVALID_REQUEST, which says why.

    Legal is: members of the group, each once; partitions that exist, each at one member, which
    subscribes to its topic. What is left out is nobody's.
    """
    starts = problem.problem.topic_start.tolist()
    number_of = {member_id: number for number, member_id in enumerate(problem.member_ids)}
    owners = [NOBODY] * starts[-1]
    for given in members:
        number = number_of.pop(given.member_id, None)
        if number is None:
            raise InvalidRequest(f"{given.member_id} is no member of the group, or comes twice.")
        if not CLASSIC_VERSION <= given.version <= request.version:
            raise InvalidRequest(
                f"The metadata for {given.member_id} is of version {given.version}: up to "
                f"{request.version} is understood by all."
            )
        for entry in given.partitions:
            index = problem.index_of.get(entry.topic_id)
            if index is None:
                raise InvalidRequest(f"Nobody subscribes to topic id {entry.topic_id.hex()}.")
            topic = problem.topics[index]
            for partition in entry.partitions:
                if not 0 <= partition < topic.partitions:
                    raise InvalidRequest(f"Topic {topic.name} has no partition {partition}.")
                place = starts[index] + partition
                if owners[place] != NOBODY:
                    raise InvalidRequest(f"Partition {topic.name}-{partition} is given twice.")
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
    shard: Shard, group: ConsumerGroup, command: InstallAssignment, request: LocalRequest
) -> tuple[SideRecord, ...]:
    """For who names an assignor what it is told; for classic members the bytes that they get."""
    assert group.local is not None, "a member of it was asked"
    named, given = group.local.assignors, {each.member_id: each for each in command.members}
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
