"""All commands, by what they are about."""

from __future__ import annotations

from typing import TypeAlias

from model.commands.access import CreateAcls, DeleteAcls, DescribeAcls
from model.commands.classic import ClassicHeartbeat, ExpireClassicDeadline, JoinGroup, SyncGroup
from model.commands.client_assignment import InstallAssignment, PrepareAssignment
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
from model.commands.places import (
    AdoptGroup,
    CheckCommit,
    CheckTxnCommit,
    GiveGroupUp,
    ListPlaces,
    NotePlace,
    ReturnGroup,
)
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

GroupCommand: TypeAlias = (
    ConsumerGroupHeartbeat
    | ConsumerGroupLeave
    | LeaveGroup
    | JoinGroup
    | SyncGroup
    | ClassicHeartbeat
    | ExpireClassicDeadline
    | ConvertToClassicGroup
    | RemoveMembers
    | ReconcileMember
    | PrepareAssignment
    | InstallAssignment
    | ExpireMember
    | RefreshTopics
    | RefreshAssignor
    | OffsetCommit
    | OffsetFetch
    | DeleteTopicOffsets
    | ExpireOffsets
    | NotePlace
    | AdoptGroup
    | ReturnGroup
    | CheckCommit
    | CheckTxnCommit
    | FinishReset
    | DescribeReset
    | FreezeGroup
    | ResumeGroup
)
"""Commands of one group, handled by the shard of its log partition."""


TopicCommand: TypeAlias = (
    CreateTopic | GrowTopic | SetTopicRacks | DeleteTopic | ForgetDeletedTopic | AllocateProducerId
)
"""Commands of Muster's own topic catalogue."""


ConfigCommand: TypeAlias = AlterGroupConfigs | DescribeGroupConfigs | ListGroupConfigs
"""Commands of group configs, which are stored beside the topics."""


AclCommand: TypeAlias = CreateAcls | DeleteAcls | DescribeAcls
"""Commands about ACLs."""


QuotaCommand: TypeAlias = AlterQuotas | DescribeQuotas
"""Commands about client quotas."""


UserCommand: TypeAlias = AlterUserScramCredentials | SetUser | DescribeUserScramCredentials
"""Commands about users with SCRAM credentials."""


CatalogueCommand: TypeAlias = TopicCommand | ConfigCommand | AclCommand | QuotaCommand | UserCommand
"""Commands about what all shards share and the store keeps."""


ServerCommand: TypeAlias = CatalogueCommand | ReplaceTopics
"""Commands about what all shards share."""


DeletionCommand: TypeAlias = DeleteGroup | DeleteOffsets | GiveGroupUp
"""Commands of one group that scan its offsets."""


TransactionCommand: TypeAlias = (
    TxnOffsetCommit | WriteTxnMarkers | ExpireProducers | AbortTransaction | EndTransaction
)
"""Commands of transactions: of one group, or of one log partition."""


ReadCommand: TypeAlias = (
    ConsumerGroupDescribe | ListGroups | DescribeGroups | PlanMigration | ListPlaces | CheckToken
)
"""Read-only commands over groups of several shards."""


Command: TypeAlias = (
    GroupCommand
    | DeletionCommand
    | ResetOffsets
    | TransactionCommand
    | ListTransactions
    | ServerCommand
    | ReadCommand
    | ComputeWhatIf
    | ExplainRebalances
    | ListOffsetChanges
)
"""A command that a front end may submit."""
