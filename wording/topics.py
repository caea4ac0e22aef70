"""Topics as people write them: names, partition counts, racks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from model.topics import NAME_LENGTH_MAX
from wording.errors import InputError

PARTITIONS_MAX = 2**31 - 1
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


Racks: TypeAlias = tuple[tuple[str, ...], ...]
"""The racks of the replicas of each partition, from partition 0."""


class TopicSpec(NamedTuple):
    """A topic that must exist with at least this many partitions.

    ``racks`` are those of the replicas of each partition; ``None`` leaves them unchanged.
    """

    name: str
    partitions: int
    racks: Racks | None = None


class TopicSpecError(InputError):
    """An invalid topic; the message is one line for users."""


def parse_topic(text: str) -> TopicSpec:
    """Parse ``NAME=PARTITIONS``."""
    name, equals, number = text.rpartition("=")
    if not equals:
        raise TopicSpecError(f"{text!r} is not NAME=PARTITIONS, such as orders=12")
    if not (number.isascii() and number.isdigit()):
        raise TopicSpecError(f"{text!r}: {number!r} is not a number of partitions")
    return check_topic(name, int(number))


def check_topic(name: object, partitions: object) -> TopicSpec:
    """Check a topic. Raises ``TopicSpecError`` for names that Kafka rejects and counts below 1."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in (".", ".."):
        raise TopicSpecError(
            f"{name!r} is not a valid topic name: use letters, digits, '.', '_' and '-'"
        )
    if len(name) > NAME_LENGTH_MAX:
        raise TopicSpecError(
            f"the topic name {name[:20]}… is longer than {NAME_LENGTH_MAX} characters"
        )
    if not isinstance(partitions, int) or isinstance(partitions, bool):
        raise TopicSpecError(f"topic {name}: {partitions!r} is not a number of partitions")
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise TopicSpecError(f"topic {name}: {partitions} partitions; there must be at least 1")
    return TopicSpec(name, partitions)


def merge_topics(specs: Iterable[TopicSpec]) -> list[TopicSpec]:
    """Remove duplicates. Raises ``TopicSpecError`` if a topic is given with two counts."""
    merged: dict[str, TopicSpec] = {}
    for spec in specs:
        known = merged.get(spec.name, spec)
        if known.partitions != spec.partitions:
            raise TopicSpecError(
                f"topic {spec.name} is given with {known.partitions} and with "
                f"{spec.partitions} partitions"
            )
        merged[spec.name] = known if known.racks is not None else spec
    return list(merged.values())


def check_racks_of(spec: TopicSpec, content: object) -> TopicSpec:
    """The topic with racks, for no more partitions than it has."""
    try:
        racks = check_racks(content)
    except TopicSpecError as error:
        raise TopicSpecError(f"topic {spec.name}: {error}") from error
    if len(racks) > spec.partitions:
        raise TopicSpecError(
            f"topic {spec.name} has {spec.partitions} partitions, but racks for {len(racks)}"
        )
    return spec._replace(racks=racks)


def check_racks(content: object) -> Racks:
    """Check a list of lists of rack names. Raises ``TopicSpecError`` for anything else."""
    if not isinstance(content, list):
        raise TopicSpecError("write the racks as a list with a list of names for each partition")
    return tuple(check_names(number, names) for number, names in enumerate(content))


def check_names(partition: int, names: object) -> tuple[str, ...]:
    """Check the racks of one partition and remove duplicates: which racks, not how many, counts."""
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise TopicSpecError(f"partition {partition}: {names!r} is not a list of rack names")
    return tuple(dict.fromkeys(names))
