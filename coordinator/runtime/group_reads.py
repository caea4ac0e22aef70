"""Reading the groups in memory: lists and descriptions."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator.core.describe import describe_classic_group, describe_consumer_group, list_groups
from coordinator.core.migration_plan import compute_migration_plan
from coordinator.core.shard import Shard
from coordinator.runtime.api import Answer
from model.commands import (
    ConsumerGroupDescribe,
    DescribeGroups,
    ListGroups,
    PlanMigration,
    ReadCommand,
)
from model.errors import GroupError
from model.ids import GroupId, compute_log_partition
from model.responses import (
    ConsumerGroupDescribeResponse,
    DescribeGroupsResponse,
    ListGroupsResponse,
)


def read_groups(shards: Sequence[Shard], command: ReadCommand) -> Answer:
    """The answer as memory has it, durable or not."""

    def shard_of(group_id: GroupId) -> Shard:
        return shards[compute_log_partition(group_id, len(shards))]

    match command:
        case ListGroups():
            return _list_groups(shards, command)
        case ConsumerGroupDescribe(_, ids):
            return ConsumerGroupDescribeResponse(
                tuple(describe_consumer_group(shard_of(group_id), group_id) for group_id in ids)
            )
        case DescribeGroups(_, ids):
            return DescribeGroupsResponse(
                tuple(describe_classic_group(shard_of(group_id), group_id) for group_id in ids)
            )
        case PlanMigration(_, (group_id,)):
            try:
                return compute_migration_plan(shard_of(group_id), group_id)
            except GroupError as error:
                return error


def _list_groups(shards: Sequence[Shard], command: ListGroups) -> ListGroupsResponse:
    states = {state.lower().strip() for state in command.states}
    types = {kind.lower() for kind in command.types}
    return ListGroupsResponse(
        tuple(
            group
            for shard in shards
            for group in list_groups(shard)
            if (not states or group.state.lower() in states)
            and (not types or group.group_type in types)
        )
    )
