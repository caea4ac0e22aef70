"""All responses."""

from __future__ import annotations

from typing import TypeAlias

from model.commands.client_assignment import PrepareAssignmentResponse
from model.responses.access import DeleteAclsResponse, DescribeAclsResponse
from model.responses.classic import (
    ClassicHeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from model.responses.configs import GroupConfigsResponse, ListGroupConfigsResponse
from model.responses.consumer import ConsumerGroupHeartbeatResponse, ConsumerGroupLeaveResponse
from model.responses.explain import ExplainGroupResponse
from model.responses.freezes import GroupFrozen, GroupResumed
from model.responses.groups import (
    ConsumerGroupDescribeResponse,
    DescribeGroupsResponse,
    ListGroupsResponse,
    MembersRemoved,
)
from model.responses.migration import MigrationPlan
from model.responses.offset_changes import ListOffsetChangesResponse
from model.responses.offsets import OffsetCommitResponse, OffsetDeleteResponse, OffsetFetchResponse
from model.responses.ownership import CheckTokenResponse
from model.responses.places import PlacesResponse
from model.responses.quotas import AlterQuotasResponse, DescribeQuotasResponse
from model.responses.resets import OffsetsReset, ResetProgress
from model.responses.topics import TopicResponse
from model.responses.transactions import ListTransactionsResponse, ProducerIdResponse
from model.responses.users import (
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponse,
)
from model.value import value
from model.what_if import WhatIfAnswer


@value
class Done:
    """An internal command was carried out, or had nothing to do."""


Response: TypeAlias = (
    ConsumerGroupHeartbeatResponse
    | ConsumerGroupLeaveResponse
    | LeaveGroupResponse
    | JoinGroupResponse
    | SyncGroupResponse
    | ClassicHeartbeatResponse
    | PrepareAssignmentResponse
    | OffsetCommitResponse
    | OffsetFetchResponse
    | ConsumerGroupDescribeResponse
    | ListGroupsResponse
    | DescribeGroupsResponse
    | MembersRemoved
    | MigrationPlan
    | PlacesResponse
    | CheckTokenResponse
    | TopicResponse
    | ProducerIdResponse
    | OffsetDeleteResponse
    | OffsetsReset
    | ResetProgress
    | GroupFrozen
    | GroupResumed
    | GroupConfigsResponse
    | ListGroupConfigsResponse
    | ListTransactionsResponse
    | DeleteAclsResponse
    | DescribeAclsResponse
    | AlterQuotasResponse
    | DescribeQuotasResponse
    | AlterUserScramCredentialsResponse
    | DescribeUserScramCredentialsResponse
    | WhatIfAnswer
    | ExplainGroupResponse
    | ListOffsetChangesResponse
    | Done
)
