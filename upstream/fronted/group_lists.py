"""Lists and descriptions of groups, of those alone that are here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from coordinator.core.groups.group_description import (
    CLASSIC,
    EMPTY,
    compute_failed_classic_description,
    compute_failed_description,
)
from coordinator.runtime.api import Answer, Coordinator, Reply
from model.commands.groups import ConsumerGroupDescribe, DescribeGroups, ListGroups
from model.commands.places import ListPlaces
from model.errors import ErrorCode
from model.ids import GroupId
from model.places import is_here
from model.responses.groups import (
    ConsumerGroupDescribeResponse,
    DescribedClassicGroup,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsResponse,
)
from model.responses.places import PlacesResponse

_ELSEWHERE: Final = "The cluster coordinates the group."


def list_groups(coordinator: Coordinator, command: ListGroups, reply: Reply) -> None:
    """List the groups that are here. One that is nothing but its place is empty."""

    def on_listed(listed: Answer) -> None:
        if not isinstance(listed, ListGroupsResponse):
            reply(listed)
            return
        places = ListPlaces(command.caller)
        coordinator.submit(places, partial(_merge, command, listed.groups, reply))

    # Without filters, to know which groups there are.
    coordinator.submit(ListGroups(command.caller), on_listed)


def _merge(
    command: ListGroups, listed: Sequence[ListedGroup], reply: Reply, answer: Answer
) -> None:
    if not isinstance(answer, PlacesResponse):
        reply(answer)
        return
    here = {group_id for group_id, place in answer.places if is_here(place)}
    known = {group.group_id for group in listed}
    states = {state.lower().strip() for state in command.states}
    types = {kind.lower() for kind in command.types}
    groups = [group for group in listed if group.group_id in here]
    groups += (ListedGroup(group_id, "", EMPTY, CLASSIC, 0, 0) for group_id in sorted(here - known))
    reply(
        ListGroupsResponse(
            tuple(
                group
                for group in groups
                if (not states or group.state.lower() in states)
                and (not types or group.group_type in types)
            )
        )
    )


def describe_groups(
    coordinator: Coordinator, command: DescribeGroups | ConsumerGroupDescribe, reply: Reply
) -> None:
    """Describe groups; NOT_COORDINATOR for each that is not here."""
    is_of = {group_id: is_here(coordinator.place_of(group_id)) for group_id in command.group_ids}
    own = tuple(group_id for group_id in command.group_ids if is_of[group_id])

    def on_described(answer: Answer) -> None:
        match answer:
            case DescribeGroupsResponse():
                classic = iter(answer.groups)
                reply(
                    DescribeGroupsResponse(
                        tuple(
                            next(classic) if is_of[group_id] else _elsewhere(group_id)
                            for group_id in command.group_ids
                        )
                    )
                )
            case ConsumerGroupDescribeResponse():
                consumers = iter(answer.groups)
                code = ErrorCode.NOT_COORDINATOR
                reply(
                    ConsumerGroupDescribeResponse(
                        tuple(
                            next(consumers)
                            if is_of[group_id]
                            else compute_failed_description(group_id, code, _ELSEWHERE)
                            for group_id in command.group_ids
                        )
                    )
                )
            case _:
                reply(answer)

    coordinator.submit(replace(command, group_ids=own), on_described)


def _elsewhere(group_id: GroupId) -> DescribedClassicGroup:
    code = ErrorCode.NOT_COORDINATOR
    return compute_failed_classic_description(group_id, _ELSEWHERE, code, state="")
