"""Topics that are asked for by name and number of partitions: on a command line, or in a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from model.topics import NAME_LENGTH_MAX

PARTITIONS_MAX = 2**31 - 1
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


Racks: TypeAlias = tuple[tuple[str, ...], ...]
"""Of the replicas of each partition, from 0 on."""


class TopicSpec(NamedTuple):
    """A topic that is to exist with at least this many partitions.

    ``racks`` are those of the replicas of each partition; ``None`` leaves them as they are.
    """

    name: str
    partitions: int
    racks: Racks | None = None


class TopicSpecError(ValueError):
    """A topic that cannot be; the message is one line for people."""


def parse_topic(text: str) -> TopicSpec:
    """``NAME=PARTITIONS``."""
    name, equals, number = text.rpartition("=")
    if not equals:
        raise TopicSpecError(f"{text!r} is not NAME=PARTITIONS, such as orders=12")
    if not (number.isascii() and number.isdigit()):
        raise TopicSpecError(f"{text!r}: {number!r} is not a number of partitions")
    return check_topic(name, int(number))


def check_topic(name: object, partitions: object) -> TopicSpec:
    """Raises ``TopicSpecError`` for names that Kafka refuses, and counts below 1."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in (".", ".."):
        raise TopicSpecError(
            f"{name!r} is no name of a topic: letters, digits, '.', '_' and '-' make one"
        )
    if len(name) > NAME_LENGTH_MAX:
        raise TopicSpecError(f"the topic name {name[:20]}… is longer than {NAME_LENGTH_MAX}")
    if not isinstance(partitions, int) or isinstance(partitions, bool):
        raise TopicSpecError(f"topic {name}: {partitions!r} is not a number of partitions")
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise TopicSpecError(f"topic {name}: {partitions} partitions; there must be at least 1")
    return TopicSpec(name, partitions)


def read_yaml(path: Path) -> object:
    """What a YAML file says. Raises ``TopicSpecError``."""
    import yaml

    try:
        content: object = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TopicSpecError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TopicSpecError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    return content


def read_topics_file(path: Path) -> list[TopicSpec]:
    """Topics of a YAML file: a mapping of names to numbers of partitions.

    Or to mappings with ``partitions``, and ``racks``: a list of names for each partition.
    """
    content = read_yaml(path)
    if content is None:
        return []
    if not isinstance(content, dict):
        raise TopicSpecError(f"{path}: write one line for each topic, such as `orders: 12`")
    try:
        return [_read_entry(name, entry) for name, entry in content.items()]
    except TopicSpecError as error:
        raise TopicSpecError(f"{path}: {error}") from error


def merge_topics(specs: Iterable[TopicSpec]) -> list[TopicSpec]:
    """Each topic once. Raises ``TopicSpecError`` where one is asked for with two counts."""
    merged: dict[str, TopicSpec] = {}
    for spec in specs:
        known = merged.get(spec.name, spec)
        if known.partitions != spec.partitions:
            raise TopicSpecError(
                f"topic {spec.name} is asked for with {known.partitions} and with "
                f"{spec.partitions} partitions"
            )
        merged[spec.name] = known if known.racks is not None else spec
    return list(merged.values())


def _read_entry(name: object, entry: object) -> TopicSpec:
    if not isinstance(entry, dict) or not {"partitions"} <= set(entry) <= {"partitions", "racks"}:
        return check_topic(name, entry)
    spec = check_topic(name, entry["partitions"])
    return check_racks_of(spec, entry["racks"]) if "racks" in entry else spec


def check_racks_of(spec: TopicSpec, content: object) -> TopicSpec:
    """The topic with racks, of no more partitions than it has."""
    try:
        racks = check_racks(content)
    except TopicSpecError as error:
        raise TopicSpecError(f"topic {spec.name}: {error}") from error
    if len(racks) > spec.partitions:
        raise TopicSpecError(
            f"topic {spec.name} has {spec.partitions} partitions, and racks of {len(racks)}"
        )
    return spec._replace(racks=racks)


def check_racks(content: object) -> Racks:
    """A list of lists of names. Raises ``TopicSpecError`` for anything else."""
    if not isinstance(content, list):
        raise TopicSpecError("write the racks as a list with a list of names for each partition")
    return tuple(check_names(number, names) for number, names in enumerate(content))


def check_names(partition: int, names: object) -> tuple[str, ...]:
    """The racks of one partition, each once: two replicas in one rack say no more than one."""
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise TopicSpecError(f"partition {partition}: {names!r} is no list of names of racks")
    return tuple(dict.fromkeys(names))
