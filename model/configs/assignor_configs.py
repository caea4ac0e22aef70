"""A group's assignor configs: pins, weights, and limits on partition movement.

Pins and weights are lists of ``PLACE=VALUE``: the place is ``topic``, ``topic:7`` or ``topic:0-9``,
the value an instance id or a weight.
"""

from __future__ import annotations

import re
from typing import Final

from model.ids import InstanceId, TopicName
from model.value import value

PARTITIONS_MAX: Final = 2_147_483_647
WEIGHT_MAX: Final = 1e100
"""Small enough to sum the weights of all partitions, and to square the sums."""

_PLACE: Final = re.compile(r"(?P<topic>[^:=,\s]+)(:(?P<first>\d{1,9})(-(?P<last>\d{1,9}))?)?")
_NUMBER: Final = re.compile(r"\d+(\.\d+)?([eE][+-]?\d{1,2})?")


@value
class Place:
    """Partitions ``first`` to ``last`` of a topic, both inclusive; all of them by default."""

    topic_name: TopicName
    first: int = 0
    last: int = PARTITIONS_MAX


@value
class Pin:
    """Reserves partitions for the member with this instance id."""

    place: Place
    instance_id: InstanceId


@value
class Weight:
    """The weight of each of these partitions."""

    place: Place
    weight: float


@value
class AssignorConfigs:
    """The assignor configs of a group, parsed.

    A partition without a weight weighs 1; if it has several, the last one counts. ``move_budget``
    is how many partitions may be revoked from live members in one epoch. ``skew_limit`` is the
    fraction of its fair share by which a member may exceed it.
    """

    pins: tuple[Pin, ...] = ()
    weights: tuple[Weight, ...] = ()
    co_partition: bool = False
    move_budget: int = PARTITIONS_MAX
    skew_limit: float = 0.05

    @property
    def has_move_budget(self) -> bool:
        """Whether the number of moves is limited at all."""
        return self.move_budget < PARTITIONS_MAX


NO_ASSIGNOR_CONFIGS: Final = AssignorConfigs()
"""The configs of a group that sets none."""


def parse_pins(entries: list[str]) -> tuple[Pin, ...]:
    """Parse pins. Raise ValueError for an invalid pin, or a partition with two pins."""
    pins = []
    for entry in entries:
        place, instance_id = _split(entry)
        if not instance_id:
            raise ValueError(f"{entry} does not name an instance: use TOPIC:PARTITION=INSTANCE")
        pins.append(Pin(place, InstanceId(instance_id)))
    _check_pins(pins)
    return tuple(pins)


def _check_pins(pins: list[Pin]) -> None:
    before: dict[TopicName, Pin] = {}
    for pin in sorted(pins, key=lambda pin: (pin.place.topic_name, pin.place.first)):
        place, other = pin.place, before.get(pin.place.topic_name)
        if other is not None and other.place.last >= place.first:
            raise ValueError(f"partition {place.first} of {place.topic_name} is pinned twice")
        before[place.topic_name] = pin


def parse_weights(entries: list[str]) -> tuple[Weight, ...]:
    """Parse weights. Raise ValueError for a weight that is not from 0 to ``WEIGHT_MAX``."""
    weights = []
    for entry in entries:
        place, text = _split(entry)
        if _NUMBER.fullmatch(text) is None:
            raise ValueError(f"{entry} has no weight of 0 or more: use TOPIC:PARTITION=WEIGHT")
        weight = float(text)
        if weight > WEIGHT_MAX:
            raise ValueError(f"the weight of {entry.partition('=')[0]} is above {WEIGHT_MAX:g}")
        weights.append(Weight(place, weight))
    return tuple(weights)


def _split(entry: str) -> tuple[Place, str]:
    before, equals, after = entry.partition("=")
    found = _PLACE.fullmatch(before.strip())
    if found is None or not equals:
        raise ValueError(f"{entry} is not TOPIC=…, TOPIC:PARTITION=… or TOPIC:FIRST-LAST=…")
    topic_name = TopicName(found["topic"])
    if found["first"] is None:
        return Place(topic_name), after.strip()
    first = int(found["first"])
    last = first if found["last"] is None else int(found["last"])
    if last < first:
        raise ValueError(f"{entry} has its last partition before the first")
    return Place(topic_name, first, last), after.strip()
