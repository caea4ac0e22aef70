"""Which commands are changes by administrators, and by which right."""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias, assert_never, get_args

from model.access.acls import CLUSTER_NAME, Operation, ResourceType
from model.commands.access import CreateAcls, DeleteAcls, DescribeAcls
from model.commands.classic import ClassicHeartbeat, ExpireClassicDeadline, JoinGroup, SyncGroup
from model.commands.client_assignment import InstallAssignment, PrepareAssignment
from model.commands.command import Command
from model.commands.configs import AlterGroupConfigs, DescribeGroupConfigs, ListGroupConfigs
from model.commands.consumer import (
    ConsumerGroupHeartbeat,
    ConsumerGroupLeave,
    ExpireMember,
    LeaveGroup,
    ReconcileMember,
    RefreshAssignor,
    RefreshTopics,
)
from model.commands.explain import ExplainRebalances
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
from model.commands.offset_changes import ListOffsetChanges
from model.commands.offsets import (
    DeleteOffsets,
    DeleteTopicOffsets,
    ExpireOffsets,
    OffsetCommit,
    OffsetFetch,
)
from model.commands.ownership import CheckToken
from model.commands.places import PlaceCommand
from model.commands.quotas import AlterQuotas, DescribeQuotas
from model.commands.resets import DescribeReset, FinishReset, ResetOffsets
from model.commands.topics import (
    CreateTopic,
    DeleteTopic,
    ForgetDeletedTopic,
    GrowTopic,
    ReplaceTopics,
    SetTopicRacks,
)
from model.commands.transactions import (
    AbortTransaction,
    AllocateProducerId,
    EndTransaction,
    ExpireProducers,
    ListTransactions,
    TxnOffsetCommit,
    WriteTxnMarkers,
)
from model.commands.users import (
    AlterUserScramCredentials,
    DescribeUserScramCredentials,
    SetUser,
)
from model.commands.what_if import ComputeWhatIf
from model.topics import Topic, TopicImage

CataloguedCommand: TypeAlias = (
    CreateTopic
    | GrowTopic
    | SetTopicRacks
    | DeleteTopic
    | AlterGroupConfigs
    | CreateAcls
    | DeleteAcls
    | AlterUserScramCredentials
    | SetUser
    | AlterQuotas
)
"""Changes of what all log partitions share."""

AuditedCommand: TypeAlias = (
    CataloguedCommand
    | DeleteGroup
    | DeleteOffsets
    | ResetOffsets
    | OffsetCommit
    | LeaveGroup
    | RemoveMembers
    | ConvertToClassicGroup
    | FreezeGroup
    | ResumeGroup
    | EndTransaction
    | WriteTxnMarkers
)
"""Changes by administrators.

Members commit and leave too: ``is_by_administrator`` tells their commands apart.
"""

AUDITED: Final[frozenset[type]] = frozenset(get_args(AuditedCommand))


def find_audited(command: Command) -> AuditedCommand | None:
    """The command, if it may be a change by an administrator.

    Each command is an ``AuditedCommand`` or listed here: mypy finds one that is neither.
    """
    if isinstance(command, PlaceCommand | DescribeReset | FinishReset | CheckToken):
        return None
    if isinstance(command, ComputeWhatIf | ExplainRebalances | ListOffsetChanges):
        return None
    if isinstance(command, AuditedCommand):
        return command
    match command:
        case (
            # What members do.
            ConsumerGroupHeartbeat()
            | ConsumerGroupLeave()
            | JoinGroup()
            | SyncGroup()
            | ClassicHeartbeat()
            | PrepareAssignment()
            | InstallAssignment()
            | TxnOffsetCommit()
            | AllocateProducerId()
            # What is only read.
            | OffsetFetch()
            | ConsumerGroupDescribe()
            | DescribeGroups()
            | ListGroups()
            | PlanMigration()
            | DescribeGroupConfigs()
            | ListGroupConfigs()
            | DescribeAcls()
            | DescribeUserScramCredentials()
            | DescribeQuotas()
            | ListTransactions()
            # The coordinator's own.
            | ReplaceTopics()
            | ReconcileMember()
            | ExpireMember()
            | ExpireClassicDeadline()
            | RefreshTopics()
            | RefreshAssignor()
            | DeleteTopicOffsets()
            | ExpireOffsets()
            | ExpireProducers()
            | AbortTransaction()
            | ForgetDeletedTopic()
        ):
            return None
        case _:
            assert_never(command)


class Subject(NamedTuple):
    """What a command changes, by the right that it takes."""

    operation: Operation
    resource_type: ResourceType
    name: str


def is_by_administrator(command: AuditedCommand) -> bool:
    """Whether the command is one that changes something for others.

    Who commits without being a member acts for a group that is empty. Who names a member to leave
    only by its instance is not that member, which knows its id.
    """
    if not command.caller.principal:  # The coordinator itself.
        return False
    match command:
        case OffsetCommit(member_epoch=epoch):
            return epoch is None
        case LeaveGroup(members=members):
            return any(each.member_id is None for each in members)
        case CreateAcls() | DeleteAcls() | DeleteTopic() | EndTransaction() | WriteTxnMarkers():
            return True
        case _:
            return not command.validate_only


def find_subject(command: AuditedCommand, image: TopicImage) -> Subject:
    """What the command changes."""
    match command:
        case CreateTopic(name=name):
            return Subject(Operation.CREATE, ResourceType.TOPIC, name)
        case GrowTopic(name=name) | SetTopicRacks(name=name):
            return Subject(Operation.ALTER, ResourceType.TOPIC, name)
        case DeleteTopic():
            topic = find_deleted(command, image)
            found = command.name if topic is None else topic.name
            return Subject(Operation.DELETE, ResourceType.TOPIC, found or "")
        case (
            AlterGroupConfigs(group_id=group_id)
            | ConvertToClassicGroup(group_id=group_id)
            | FreezeGroup(group_id=group_id)
            | ResumeGroup(group_id=group_id)
        ):
            return Subject(Operation.ALTER_CONFIGS, ResourceType.GROUP, group_id)
        case DeleteGroup(group_id=group_id) | DeleteOffsets(group_id=group_id):
            return Subject(Operation.DELETE, ResourceType.GROUP, group_id)
        case (
            OffsetCommit(group_id=group_id)
            | ResetOffsets(group_id=group_id)
            | LeaveGroup(group_id=group_id)
            | RemoveMembers(group_id=group_id)
        ):
            return Subject(Operation.READ, ResourceType.GROUP, group_id)
        case AlterUserScramCredentials() | SetUser():
            return Subject(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
        case AlterQuotas():
            return Subject(Operation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)
        case CreateAcls() | DeleteAcls() | EndTransaction():
            return Subject(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
        case WriteTxnMarkers():
            return Subject(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
        case _:
            assert_never(command)


def find_deleted(command: DeleteTopic, image: TopicImage) -> Topic | None:
    """The topic that the command means, if it is there."""
    if command.name is not None:
        return image.by_name.get(command.name)
    return None if command.topic_id is None else image.by_id.get(command.topic_id)
