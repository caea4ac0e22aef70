"""Which event of the tables a command is."""

from __future__ import annotations

from typing import Any

from coordinator.core.state.consumer.consumer_member import Member
from coordinator.core.target.target_assignment import InstallTarget
from model.commands.classic import ClassicHeartbeat, ExpireClassicDeadline, JoinGroup, SyncGroup
from model.commands.consumer import (
    UNCHANGED,
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    Deadline,
    ExpireMember,
    LeaveGroup,
    RefreshTopics,
)
from model.commands.offsets import OffsetCommit
from model.log.records import MemberState

CLASSIC_EVENTS: dict[type, str] = {
    JoinGroup: "classic join",
    SyncGroup: "classic sync",
    ClassicHeartbeat: "classic heartbeat",
    LeaveGroup: "classic leave",
}


def event_names(command: Any, member: Member | None) -> tuple[str | None, str | None] | None:
    """The events of the tables that a command is: of its member, of its group."""
    match command:
        case ConsumerGroupHeartbeat():
            return _heartbeat_event(command, member)
        case ConsumerGroupLeave(member_epoch=-2):
            return "leave for a while", "leave"
        case ConsumerGroupLeave():
            return "leave", "leave"
        case ExpireMember():
            event = command.deadline.value
            return (event, event) if _holds(command, member) else None
        case OffsetCommit(member_epoch=None):
            return None, "simple commit"
        case OffsetCommit():
            is_older = member is not None and command.member_epoch != member.member_epoch
            return "commit, older epoch" if is_older else "commit", "commit"
        case InstallTarget():
            return None, "target"
        case RefreshTopics():
            return None, "topics"
        case JoinGroup() | SyncGroup() | ClassicHeartbeat() | LeaveGroup():
            return None, CLASSIC_EVENTS[type(command)]
        case ExpireClassicDeadline():
            return None, f"classic {command.deadline.value}"
        case _:
            return None


def _holds(command: ExpireMember, member: Member | None) -> bool:
    if member is None:
        return False
    if command.deadline is Deadline.SESSION:
        return True
    is_revoking = member.state is MemberState.UNREVOKED_PARTITIONS
    return is_revoking and member.member_epoch == command.member_epoch


def _heartbeat_event(command: ConsumerGroupHeartbeat, member: Member | None) -> tuple[str, str]:
    if command.member_epoch == 0:
        return "join", "join"
    if member is None:
        return "heartbeat", "heartbeat"
    if command.member_epoch != member.member_epoch:
        is_previous = command.member_epoch == member.previous_member_epoch
        is_accepted = is_previous and command.owned is not None and member.member_epoch > 0
        return "previous epoch" if is_accepted else "fenced epoch", "heartbeat"
    names, metadata = command.subscribed_topic_names, member.metadata
    if names is not UNCHANGED and (
        metadata is None
        or tuple(sorted(set(names))) != metadata.subscribed_topic_names
        or command.subscribed_topic_regex not in (UNCHANGED, metadata.subscribed_topic_regex)
    ):
        return "change", "heartbeat"
    return "heartbeat" if command.owned is None else "acknowledge", "heartbeat"
