"""What a group's own settings say to its assignor: pins, weights, and how partitions may move.

Pins and weights are lists of places with a value: ``topic``, ``topic:7`` or ``topic:0-9``, ``=``,
and the instance id or the weight.
"""

from __future__ import annotations

import re
from typing import Final

from model.ids import InstanceId, TopicName
from model.value import value

PARTITIONS_MAX: Final = 2_147_483_647
WEIGHT_MAX: Final = 1e100
"""The weights of all partitions can be summed up, and the squares of the sums."""

_PLACE: Final = re.compile(r"(?P<topic>[^:=,\s]+)(:(?P<first>\d{1,9})(-(?P<last>\d{1,9}))?)?")
_NUMBER: Final = re.compile(r"\d+(\.\d+)?([eE][+-]?\d{1,2})?")


@value
class Place:
    """Partitions ``first`` to ``last`` of a topic; all of it where neither was said."""

    topic_name: TopicName
    first: int = 0
    last: int = PARTITIONS_MAX


@value
class Pin:
    """These partitions are for the member with that instance id."""

    place: Place
    instance_id: InstanceId


@value
class Weight:
    """Each of these partitions weighs so much."""

    place: Place
    weight: float


@value
class AssignorConfigs:
    """``move_budget``: partitions that may be taken from live members in one epoch.

    A partition without a weight weighs 1. Of two weights of a partition the later one counts.
    ``skew_limit``: by what part of its fair share a member may have more.
    """

    pins: tuple[Pin, ...] = ()
    weights: tuple[Weight, ...] = ()
    co_partition: bool = False
    move_budget: int = PARTITIONS_MAX
    skew_limit: float = 0.05

    @property
    def has_move_budget(self) -> bool:
        """Whether there is a limit at all."""
        return self.move_budget < PARTITIONS_MAX


NO_ASSIGNOR_CONFIGS: Final = AssignorConfigs()
"""Of a group that says nothing."""


def parse_pins(entries: list[str]) -> tuple[Pin, ...]:
    """Raises ValueError where an entry is no pin, or a partition is pinned to two instances."""
    pins = []
    for entry in entries:
        place, instance_id = _split(entry)
        if not instance_id:
            raise ValueError(f"{entry} does not name an instance: write TOPIC:PARTITION=INSTANCE")
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
    """Raises ValueError where an entry is no weight from 0 to ``WEIGHT_MAX``."""
    weights = []
    for entry in entries:
        place, text = _split(entry)
        if _NUMBER.fullmatch(text) is None:
            raise ValueError(f"{entry} has no weight of 0 or more: write TOPIC:PARTITION=WEIGHT")
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
        raise ValueError(f"{entry} ends before it begins")
    return Place(topic_name, first, last), after.strip()
