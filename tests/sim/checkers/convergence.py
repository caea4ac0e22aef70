"""Whether a cluster has come to rest: what server and clients believe, by group (L1)."""

from __future__ import annotations

from typing import Any

from coordinator.core.state.classic.classic_group import ClassicGroup, ClassicGroupState
from coordinator.core.state.consumer.consumer_group import ConsumerGroup, ConsumerGroupState
from model.ids import GroupId
from tests.sim.checkers.classic_checkers import decode_places
from tests.sim.clients.classic_client import ClassicClient
from tests.sim.clients.client import Client
from tests.sim.world import GROUPS, World
from tests.support.shadow import Place, describe_group
from tests.support.subscriptions import matches, names_in, regex_in, topics_of

Clients = dict[Any, Client]


def is_anything_moving(world: World) -> bool:
    """Whether a group is on its way."""
    classic = (
        group for shard in world.runtime.shards for group in shard.all_classic_groups().values()
    )
    at_rest = (ClassicGroupState.STABLE, ClassicGroupState.EMPTY)
    return any(is_moving(group) for group in world.runtime.groups()) or any(
        group.state not in at_rest for group in classic
    )


def is_moving(group: ConsumerGroup) -> bool:
    """Whether the group is on its way."""
    return group.state() in (ConsumerGroupState.ASSIGNING, ConsumerGroupState.RECONCILING)


def compute_unconverged(world: World) -> str | None:
    """Why the cluster has not converged: servers and clients agree, and all partitions have one."""
    for name in GROUPS:
        clients: Clients = {
            client.member_id: client
            for client in world.clients
            if client.group_id == name and not client.is_dead and not client.is_out
        }
        shard = world.runtime.shard_of(GroupId(name))
        group = shard.consumer_groups.get(GroupId(name))
        classic = shard.classic_group(GroupId(name))
        if group is not None:
            why = _compute_unconverged_group(world, group, clients)
        elif classic is not None:
            why = _compute_unconverged_classic(world, classic, clients)
        else:
            why = "it is not there" if clients else None
        if why is not None:
            return f"{name}: {why}"
    return None


def _compute_wanted(world: World, clients: Clients) -> set[Place]:
    """The partitions that must have an owner."""
    image = world.runtime.image
    return {
        (image.by_name[name].topic_id, partition)
        for name in frozenset().union(*(topics_of(c.names, image) for c in clients.values()))
        if name in image.by_name
        for partition in range(image.by_name[name].partitions)
    }


def _compute_unconverged_group(world: World, group: ConsumerGroup, clients: Clients) -> str | None:
    description = describe_group(group)
    entries: dict[Any, Any] = description["entries"]
    if set(entries) != set(clients):
        return f"members {sorted(entries)} for clients {sorted(clients)}"
    if group.state() not in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY):
        return f"{group.state().value} at {group.group_epoch}: {entries}"
    unresolved = _compute_unresolved(world, group)
    if unresolved:
        return f"patterns {unresolved} are not resolved"
    wanted = _compute_wanted(world, clients)
    if set(description["owner"]) != wanted:
        return f"held are {sorted(description['owner'])}, to be held {sorted(wanted)}"
    for member_id, client in clients.items():
        epoch, _, _, assigned, _ = entries[member_id]["current"]
        why = _compute_unsettled(client, epoch, set(assigned))
        if why is not None:
            return why
        metadata = entries[member_id]["metadata"]
        said = names_in(client.names), regex_in(client.names)
        if (metadata.subscribed_topic_names, metadata.subscribed_topic_regex) != (
            tuple(sorted(said[0])),
            said[1],
        ):
            return f"{member_id} subscribes to {client.names}, which the server does not know"
    return None


def _compute_unresolved(world: World, group: ConsumerGroup) -> list[str]:
    """The patterns that do not stand for the topics as they are: their resolution is an epoch.

    Who holds what does not show it: others may name the topic that a pattern is to match.
    """
    image = world.runtime.image
    return sorted(
        regex
        for regex in group.regexes
        if group.resolved_regexes.get(regex) != matches(regex, image)
    )


def _compute_unsettled(client: Client, epoch: int, assigned: set[Place]) -> str | None:
    if client.epoch != epoch or client.owned != assigned or not client.believes:
        return (
            f"{client.member_id} owns {client.owned} at {client.epoch}, not {assigned} at {epoch}"
        )
    if isinstance(client, ClassicClient):
        if not client.is_settled:
            return f"{client.member_id} has a step to take"
        if client.leads_what_has_changed:
            return f"{client.member_id} leads, and has not noticed yet that topics have changed"
    return None


def _compute_unconverged_classic(world: World, group: ClassicGroup, clients: Clients) -> str | None:
    if set(group.members) != set(clients):
        return f"classic members {sorted(group.members)} for clients {sorted(clients)}"
    if not clients:
        return None
    if group.state is not ClassicGroupState.STABLE:
        return f"classic {group.state.value} at {group.generation}"
    held: set[Place] = set()
    for member_id, member in group.members.items():
        assigned = set(decode_places(member.assignment, world.runtime.image))
        if held & assigned:
            return f"{member_id} and another have {held & assigned}"
        held |= assigned
        why = _compute_unsettled(clients[member_id], group.generation, assigned)
        if why is not None:
            return why
    wanted = _compute_wanted(world, clients)
    return None if held == wanted else f"classic members hold {held}, to be held {wanted}"


def compute_epochs(world: World) -> dict[GroupId, int]:
    """The epoch or the generation of each group."""
    epochs = {group.group_id: group.group_epoch for group in world.runtime.groups()}
    for shard in world.runtime.shards:
        for group_id, group in shard.all_classic_groups().items():
            epochs[group_id] = group.generation
    return epochs
