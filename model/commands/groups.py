"""Commands that list, describe, convert and delete groups of any protocol."""

from __future__ import annotations

from model.caller import Caller
from model.commands.consumer import LeavingMember
from model.ids import GroupId, TopicName
from model.value import value


@value
class ListGroups:
    """List groups. An empty filter matches everything; filters ignore case.

    Like Kafka, it trims blanks around a state but not around a type. With a topic only consumer
    groups that subscribe to it are listed.
    """

    caller: Caller
    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    topic: TopicName | None = None


@value
class DescribeGroups:
    """Describe classic groups."""

    caller: Caller
    group_ids: tuple[GroupId, ...]


@value
class ConsumerGroupDescribe:
    """Describe consumer groups; results are in the order of ``group_ids``."""

    caller: Caller
    group_ids: tuple[GroupId, ...]


@value
class PlanMigration:
    """Report, member by member, what blocks a group's conversion to the consumer protocol."""

    caller: Caller
    group_id: GroupId


@value
class RemoveMembers:
    """An administrator removes members, all or none.

    ``revision`` is that of a preview: if the group has changed since, nothing is removed.
    """

    caller: Caller
    group_id: GroupId
    members: tuple[LeavingMember, ...]
    reason: str = ""
    revision: str | None = None
    validate_only: bool = False


@value
class ConvertToClassicGroup:
    """Convert a consumer group without members of the consumer protocol to a classic group."""

    caller: Caller
    group_id: GroupId
    validate_only: bool = False


@value
class DeleteGroup:
    """Delete an empty group with all its offsets, including pending transactional ones."""

    caller: Caller
    group_id: GroupId
    validate_only: bool = False
