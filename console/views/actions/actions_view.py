"""What can be done to a group, and why something cannot be done now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from console.views.tables import render_cell
from muster.v1 import admin_pb2, group_pb2, reset_pb2
from wording.configs import render_source
from wording.groups import render_group_state, render_type
from wording.times import render_second, render_time
from wording.undos import render_kind

MEMBERS_MAX: Final = 200
TOPICS_MAX: Final = 200
CHANGES_MAX: Final = 50

STRATEGIES: Final = (
    ("to_earliest", "--to-earliest", "where the log begins"),
    ("to_latest", "--to-latest", "after the last record"),
    ("to_current", "--to-current", "the committed offset; after the last record without one"),
    ("to_datetime", "--to-datetime", "the first record not older than VALUE: a time, or 90m"),
    ("by_duration", "--by-duration", "the first record not older than VALUE, such as PT1H30M"),
    ("shift_by", "--shift-by", "VALUE records on; back if it is negative"),
    ("to_offset", "--to-offset", "the offset VALUE"),
    ("to_group", "--to-group", "the committed offsets of the group VALUE"),
    ("to_as_of", "--to-as-of", "what the group had committed at VALUE: a time, or offset:N"),
    ("from_file", "--from-file", "the offsets below, a line each: topic,partition,offset"),
)
"""Name, option of the command, and meaning of each strategy of a reset."""

_RIGHT_OF: Final = {
    "freeze": "ALTER_CONFIGS",
    "resume": "ALTER_CONFIGS",
    "remove-member": "READ",
    "reset": "READ",
    "undo": "READ",
    "configs": "ALTER_CONFIGS",
    "delete": "DELETE",
    "delete-offsets": "DELETE",
    "rollback": "ALTER_CONFIGS",
}
"""What each action needs on the group, as docs/security.md has it."""


@dataclass(frozen=True, slots=True)
class MemberChoice:
    """A member that can be removed."""

    member_id: str
    instance_id: str
    about: str


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """A topic with committed offsets."""

    name: str
    offsets: int


@dataclass(frozen=True, slots=True)
class ConfigChoice:
    """A config of the group; ``is_own``: it is not the server's."""

    name: str
    value: str
    is_own: bool
    source: str
    server_value: str


@dataclass(frozen=True, slots=True)
class ChangeChoice:
    """A change of offsets that can be undone."""

    log_offset: int
    about: str


@dataclass(frozen=True, slots=True)
class ActionsView:
    """``obstacles``: why an action cannot be done, by its name; what can be done is not there."""

    group_id: str
    state: str
    members: Sequence[MemberChoice]
    members_left_out: int
    topics: Sequence[TopicChoice]
    topics_left_out: int
    changes: Sequence[ChangeChoice]
    configs: Sequence[ConfigChoice]
    obstacles: dict[str, str]
    strategies: Sequence[tuple[str, str, str]] = STRATEGIES


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What was asked; ``None`` for what there is not, or the visitor may not see."""

    description: admin_pb2.DescribeGroupResponse | None
    offsets: group_pb2.FetchOffsetsResponse | None
    changes: reset_pb2.ListOffsetChangesResponse | None
    configs: Sequence[admin_pb2.GroupConfig] | None


def compute_actions_view(group_id: str, facts: GroupFacts) -> ActionsView:
    """What can be done to a group."""
    group = facts.description.group if facts.description is not None else admin_pb2.Group()
    topics = [
        TopicChoice(topic.topic_name, len(topic.partitions))
        for topic in (facts.offsets.topics if facts.offsets is not None else ())
    ]
    changes = facts.changes.changes if facts.changes is not None else ()
    return ActionsView(
        group_id,
        _describe_state(facts.description),
        [_make_member(member) for member in group.members[:MEMBERS_MAX]],
        max(len(group.members) - MEMBERS_MAX, 0),
        topics[:TOPICS_MAX],
        max(len(topics) - TOPICS_MAX, 0),
        [_make_change(change) for change in changes[:CHANGES_MAX]],
        [_make_config(config) for config in facts.configs or ()],
        {
            name: why
            for name, right in _RIGHT_OF.items()
            if (why := _find_obstacle(name, right, facts))
        },
    )


def _find_obstacle(name: str, right: str, facts: GroupFacts) -> str:
    description = facts.description
    if description is None:
        needs_group = name not in ("reset", "undo", "configs")
        return "There is no such group, or you may not describe it." if needs_group else ""
    if right not in description.authorized_operations:
        return f"You need the right {right} on this group."
    return _find_hindrance(name, description.group, facts)


def _find_hindrance(name: str, group: admin_pb2.Group, facts: GroupFacts) -> str:
    """What of the group itself is in the way."""
    is_consumer = group.group_type == admin_pb2.GROUP_TYPE_CONSUMER
    hindrances: dict[str, Collection[tuple[bool, str]]] = {
        "freeze": (
            (not is_consumer, "Only consumer groups can be frozen: this group's members assign."),
            (bool(group.frozen_since_ms), "It is frozen already."),
        ),
        "resume": ((not group.frozen_since_ms, "It is not frozen."),),
        "remove-member": ((not group.members, "It has no members."),),
        "undo": (
            (
                facts.changes is not None and not facts.changes.changes,
                "No change of its offsets is known: commits are none.",
            ),
        ),
        "delete": ((bool(group.members), "It has members: only an empty group can be deleted."),),
        "delete-offsets": (
            (facts.offsets is not None and not facts.offsets.topics, "It has no offsets."),
        ),
        "rollback": ((not is_consumer, "It is no consumer group: there is no way back to go."),),
    }
    return next((why for is_so, why in hindrances.get(name, ()) if is_so), "")


def _describe_state(description: admin_pb2.DescribeGroupResponse | None) -> str:
    if description is None:
        return "not there"
    group = description.group
    state = f"{render_type(group.group_type)}, {render_group_state(group.state)}"
    if group.frozen_since_ms:
        return f"{state}, frozen since {render_second(group.frozen_since_ms)} by {group.frozen_by}"
    return state


def _make_member(member: admin_pb2.GroupMember) -> MemberChoice:
    count = sum(len(topic.partitions) for topic in member.assignment)
    about = f"client {render_cell(member.client_id)} on {member.client_host}, {count} partitions"
    return MemberChoice(member.member_id, member.instance_id, about)


def _make_change(change: reset_pb2.OffsetChange) -> ChangeChoice:
    who = f" by {change.principal}" if change.principal else ""
    about = (
        f"{render_time(change.changed_ms)}: {render_kind(change)}, {change.offsets} offsets{who}"
    )
    return ChangeChoice(change.log_offset, about)


def _make_config(config: admin_pb2.GroupConfig) -> ConfigChoice:
    return ConfigChoice(
        config.name,
        config.value,
        config.source == admin_pb2.CONFIG_SOURCE_GROUP,
        render_source(config.source),
        config.server_value,
    )
