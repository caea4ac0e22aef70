"""Reads groups from memory: lists and descriptions, in slices if they are long."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from coordinator.core.deadlines.liveness import Liveness
from coordinator.core.groups.group_description import (
    WaitTimes,
    begin_description,
    describe_classic_group,
    list_groups,
)
from coordinator.core.groups.group_places import compute_places_answer, list_places
from coordinator.core.groups.ownership import check_token
from coordinator.core.state.shard import Shard
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.commit.shard_context import ShardContext
from coordinator.runtime.ledger.change_reads import read_offset_changes
from coordinator.runtime.ledger.ledger_reads import read_rebalances
from coordinator.runtime.ledger.rebalance_ledger import RebalanceLedger
from coordinator.runtime.loop.slices import Steps
from model.commands.command import ReadCommand
from model.commands.explain import ExplainRebalances
from model.commands.groups import ConsumerGroupDescribe, DescribeGroups, ListGroups, PlanMigration
from model.commands.offset_changes import ListOffsetChanges
from model.commands.ownership import CheckToken
from model.commands.places import ListPlaces
from model.errors import GroupError, UnknownServerError
from model.ids import GroupId, MemberId, compute_log_partition
from model.places import GroupPlace
from model.responses.groups import (
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
    DescribedMember,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsResponse,
)
from model.responses.places import PlacesResponse
from translator.plan import compute_migration_plan

SLICE = 500
"""Members or groups described per iteration, each in some 10 µs."""


class GroupReads:
    """Answers read commands."""

    def __init__(self, context: ShardContext, liveness: Liveness, ledger: RebalanceLedger) -> None:
        self._context = context
        self._liveness = liveness
        self._ledger = ledger

    def submit(self, command: ReadCommand, reply: Reply) -> None:
        """Read; the response is sent when everything it shows is durable."""
        group_ids = _get_group_ids(command)
        self._context.slices.run(
            self._read(command, group_ids, reply),
            lambda bug: self._context.answer(group_ids, reply, UnknownServerError(repr(bug))),
        )

    def _read(
        self, command: ReadCommand, group_ids: tuple[GroupId, ...], reply: Reply
    ) -> Steps[None]:
        context = self._context
        answer = yield from read_groups(context.shards, command, self._wait_times)
        # What was read in earlier iterations is durable by then, too.
        if isinstance(command, ListGroups | ListPlaces):
            generation = context.durability.generation_of_all()
            context.writer.answer_when_durable(generation, reply, answer)
        else:
            context.answer(group_ids, reply, answer)

    def explain(self, command: ExplainRebalances | ListOffsetChanges, reply: Reply) -> None:
        """Tell why the group rebalanced, or what changed its offsets."""
        group_ids = (command.group_id,)
        self._context.slices.run(
            self._explain(command, reply),
            lambda bug: self._context.answer(group_ids, reply, UnknownServerError(repr(bug))),
        )

    def _explain(self, command: ExplainRebalances | ListOffsetChanges, reply: Reply) -> Steps[None]:
        context, group_id = self._context, command.group_id
        shard = context.shard_of(group_id)
        if isinstance(command, ListOffsetChanges):
            changes = yield from read_offset_changes(context.store, shard, command)
            generation = context.durability.generation_of_offsets(group_id)
            context.writer.answer_when_durable(generation, reply, changes)
            return
        answer = yield from read_rebalances(context.store, self._ledger, shard, command)
        context.answer((group_id,), reply, answer)

    def _wait_times(self, group_id: GroupId) -> WaitTimes:
        clock = self._context.clock
        now_ms = clock.monotonic_ms()

        def left_ms_of(member_id: MemberId) -> int | None:
            return self._liveness.compute_rebalance_left_ms(group_id, member_id, now_ms)

        return WaitTimes(clock.wall_ms(), left_ms_of)


def _get_group_ids(command: ReadCommand) -> tuple[GroupId, ...]:
    """The groups that a command names; none for a list, which shows all groups."""
    match command:
        case ListGroups() | ListPlaces():
            return ()
        case PlanMigration() | CheckToken():
            return (command.group_id,)
        case ConsumerGroupDescribe() | DescribeGroups():
            return command.group_ids


def read_groups(
    shards: Sequence[Shard],
    command: ReadCommand,
    times_of: Callable[[GroupId], WaitTimes | None] = lambda _: None,
) -> Steps[Answer]:
    """The response from memory, durable or not. Each group is shown as of one moment."""

    def shard_of(group_id: GroupId) -> Shard:
        return shards[compute_log_partition(group_id, len(shards))]

    match command:
        case ListGroups():
            return (yield from _list_groups(shards, command))
        case ListPlaces():
            return (yield from _list_places(shards))
        case ConsumerGroupDescribe(_, ids):
            return (yield from _describe_consumer_groups(shard_of, ids, times_of))
        case DescribeGroups(_, ids):
            return (yield from _describe_classic_groups(shard_of, ids))
        case CheckToken(group_id=group_id):
            return check_token(shard_of(group_id), command)
        case PlanMigration(_, group_id):
            try:
                return (yield from compute_migration_plan(shard_of(group_id), group_id))
            except GroupError as error:
                return error


def _describe_classic_groups(
    shard_of: Callable[[GroupId], Shard], group_ids: Sequence[GroupId]
) -> Steps[DescribeGroupsResponse]:
    groups = []
    left = SLICE
    for group_id in group_ids:
        group = describe_classic_group(shard_of(group_id), group_id)
        groups.append(group)
        left -= 1 + len(group.members)
        if left <= 0:
            left = SLICE
            yield
    return DescribeGroupsResponse(tuple(groups))


def _describe_consumer_groups(
    shard_of: Callable[[GroupId], Shard],
    group_ids: Sequence[GroupId],
    times_of: Callable[[GroupId], WaitTimes | None],
) -> Steps[ConsumerGroupDescribeResponse]:
    groups: list[DescribedConsumerGroup] = []
    left = SLICE
    for group_id in group_ids:
        group, rest = begin_description(shard_of(group_id), group_id, times_of(group_id))
        members: list[DescribedMember] = []
        for member in rest:
            members.append(member)
            left -= member.compute_weight()
            if left <= 0:
                left = SLICE
                yield
        groups.append(replace(group, members=tuple(members)))
        left -= 1
        if left <= 0:
            left = SLICE
            yield
    return ConsumerGroupDescribeResponse(tuple(groups))


def _list_groups(shards: Sequence[Shard], command: ListGroups) -> Steps[ListGroupsResponse]:
    states = {state.lower().strip() for state in command.states}
    types = {kind.lower() for kind in command.types}
    listed: list[ListedGroup] = []
    left = SLICE
    for shard in shards:
        groups = list(list_groups(shard))
        subscribed = shard.groups_by_topic.get(command.topic, ()) if command.topic else ()
        listed += (
            group
            for group in groups
            if (not states or group.state.lower() in states)
            and (not types or group.group_type in types)
            and (command.topic is None or group.group_id in subscribed)
        )
        left -= len(groups)
        if left <= 0:
            left = SLICE
            yield
    return ListGroupsResponse(tuple(listed))


def _list_places(shards: Sequence[Shard]) -> Steps[PlacesResponse]:
    found: list[tuple[GroupId, GroupPlace]] = []
    left = SLICE
    for shard in shards:
        places = list_places(shard)
        found += places
        left -= len(places)
        if left <= 0:
            left = SLICE
            yield
    return compute_places_answer(found)
