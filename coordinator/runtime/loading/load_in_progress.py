"""Refuses requests for shards that are loading, reads too, with COORDINATOR_LOAD_IN_PROGRESS."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, TypeVar, assert_never

from coordinator.core.groups.group_description import (
    compute_failed_classic_description,
    compute_failed_description,
)
from coordinator.dispatch.command_table import COMMANDS, Loading
from coordinator.runtime.api import Answer, Reply
from coordinator.runtime.loop.stats import Stats
from model.commands.command import Command
from model.commands.groups import ConsumerGroupDescribe, DescribeGroups
from model.errors import CoordinatorLoadInProgress, ErrorCode
from model.ids import GroupId, LogPartition, compute_log_partition
from model.responses.groups import (
    ConsumerGroupDescribeResponse,
    DescribedClassicGroup,
    DescribedConsumerGroup,
    DescribeGroupsResponse,
)

MESSAGE = "The coordinator is loading the group; retry later."

G = TypeVar("G", DescribedClassicGroup, DescribedConsumerGroup)


class LoadInProgress:
    """Answers commands that cannot be handled yet. ``left`` holds the shards still loading."""

    def __init__(self, left: Collection[LogPartition], partitions: int, stats: Stats) -> None:
        self._left = left
        self._partitions = partitions
        self._stats = stats

    def refuse(
        self, command: Command, reply: Reply, submit: Callable[[Command, Reply], None]
    ) -> bool:
        """Answer a command that needs a shard still loading; ``False`` if it can be handled.

        Listing groups is refused until every shard is loaded, because the list would be incomplete.
        If a describe names several groups, those already loaded are described and the answers are
        merged.
        """
        named: Any = command
        match COMMANDS[type(command)].loading:
            case Loading.NOTHING:
                return False
            case Loading.ALL:
                is_loading = bool(self._left)
            case Loading.GROUP:
                is_loading = self._is_loading(named.group_id)
            case Loading.LOG_PARTITION:
                is_loading = named.partition in self._left
            case Loading.EACH_GROUP:
                return self._describe_loaded(named, reply, submit)
            case unknown:
                assert_never(unknown)
        if is_loading:
            self._stats.count_error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.name)
            reply(CoordinatorLoadInProgress(MESSAGE))
        return is_loading

    def _is_loading(self, group_id: GroupId) -> bool:
        return compute_log_partition(group_id, self._partitions) in self._left

    def _describe_loaded(
        self,
        command: ConsumerGroupDescribe | DescribeGroups,
        reply: Reply,
        submit: Callable[[Command, Reply], None],
    ) -> bool:
        group_ids = command.group_ids
        loaded = tuple(group_id for group_id in group_ids if not self._is_loading(group_id))
        if len(loaded) == len(group_ids):
            return False

        def merge(answer: Answer) -> None:
            match answer:
                case ConsumerGroupDescribeResponse():
                    consumers = _merge(group_ids, loaded, answer.groups, _describe_consumer)
                    reply(ConsumerGroupDescribeResponse(consumers))
                case DescribeGroupsResponse():
                    classic = _merge(group_ids, loaded, answer.groups, _describe_classic)
                    reply(DescribeGroupsResponse(classic))
                case _:
                    reply(answer)

        submit(replace(command, group_ids=loaded), merge)
        return True


def _describe_consumer(group_id: GroupId) -> DescribedConsumerGroup:
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return compute_failed_description(group_id, code, MESSAGE)


def _describe_classic(group_id: GroupId) -> DescribedClassicGroup:
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return compute_failed_classic_description(group_id, MESSAGE, code, state="")


def _merge(
    group_ids: tuple[GroupId, ...],
    loaded: tuple[GroupId, ...],
    described: tuple[G, ...],
    describe_loading: Callable[[GroupId], G],
) -> tuple[G, ...]:
    known = dict(zip(loaded, described, strict=True))
    return tuple(
        known[group_id] if group_id in known else describe_loading(group_id)
        for group_id in group_ids
    )
