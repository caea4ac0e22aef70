"""Inputs of assignors besides owners and subscriptions: racks, weights, pins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from coordinator.core.state.consumer.consumer_member import Member
from model.configs.assignor_configs import AssignorConfigs, Place
from model.topics import Topic
from muster.assignors.problem import NO_RACK, NOBODY, Racks, Weights
from muster.assignors.registry import ASSIGNORS
from muster.assignors.rules import Rules

Starts = npt.NDArray[np.int64]


def compute_needs(assignor: str) -> tuple[bool, bool]:
    """Whether the assignor uses racks, and weights; one of an installed package may use both.

    The name is enough: a built-in assignor cannot be replaced.
    """
    known = ASSIGNORS.get(assignor)
    return (True, True) if known is None else (known.uses_racks, known.uses_weights)


def compute_racks(
    members: Sequence[Member], topics: Sequence[Topic], starts: Starts
) -> Racks | None:
    """The racks of members and replicas; ``None`` if no member or no topic has any."""
    names = [_rack_of(member) for member in members]
    if not any(names) or not any(topic.racks for topic in topics):
        return None
    found = {name for name in names if name}
    found.update(rack for topic in topics for racks in topic.racks for rack in racks)
    numbers = {name: number for number, name in enumerate(sorted(found))}
    of_member = np.array([numbers[name] if name else NO_RACK for name in names], np.int64)
    width = np.zeros(int(starts[-1]), np.int64)
    replicas = []
    for topic, start in zip(topics, starts.tolist(), strict=False):
        for partition, racks in enumerate(topic.racks[: topic.partitions]):
            width[start + partition] = len(racks)
            replicas += [numbers[rack] for rack in racks]
    return Racks(of_member, np.append(0, np.cumsum(width)), np.array(replicas, np.int64))


def _rack_of(member: Member) -> str:
    return (member.metadata.rack_id or "") if member.metadata is not None else ""


def compute_weights(
    configs: AssignorConfigs, topics: Sequence[Topic], starts: Starts
) -> Weights | None:
    """The weights of the partitions; ``None`` if none is configured: all weigh the same."""
    if not configs.weights:
        return None
    weight = np.ones(int(starts[-1]))
    index_of = {topic.name: index for index, topic in enumerate(topics)}
    for entry in configs.weights:
        index = index_of.get(entry.place.topic_name)
        if index is not None:
            weight[_find(entry.place, topics, starts, index)] = entry.weight
    return Weights(weight, configs.skew_limit)


def compute_rules(
    configs: AssignorConfigs, members: Sequence[Member], topics: Sequence[Topic], starts: Starts
) -> Rules:
    """The rules from the group configs; pins of missing instances or topics have no effect."""
    pinned = None
    if configs.pins:
        pinned = np.full(int(starts[-1]), NOBODY, np.int32)
        for place, member in _find_pins(configs, members, topics, starts):
            pinned[place] = member
    return Rules(pinned, configs.co_partition, configs.move_budget)


def _find_pins(
    configs: AssignorConfigs, members: Sequence[Member], topics: Sequence[Topic], starts: Starts
) -> Iterator[tuple[slice, int]]:
    member_of = {
        member.metadata.instance_id: number
        for number, member in enumerate(members)
        if member.metadata is not None and member.metadata.instance_id is not None
    }
    index_of = {topic.name: index for index, topic in enumerate(topics)}
    for pin in configs.pins:
        index, member = index_of.get(pin.place.topic_name), member_of.get(pin.instance_id)
        if index is not None and member is not None:
            yield _find(pin.place, topics, starts, index), member


def _find(place: Place, topics: Sequence[Topic], starts: Starts, index: int) -> slice:
    start, partitions = int(starts[index]), topics[index].partitions
    return slice(start + min(place.first, partitions), start + min(place.last + 1, partitions))
