"""Topics that are asked for by name and number of partitions: on a command line, or in a file."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

NAME_LENGTH_MAX = 249
PARTITIONS_MAX = 2**31 - 1
_NAME = re.compile(r"[a-zA-Z0-9._-]+")


class TopicSpec(NamedTuple):
    """A topic that is to exist with at least this many partitions."""

    name: str
    partitions: int


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


def read_topics_file(path: Path) -> list[TopicSpec]:
    """Topics of a YAML file: a mapping of names to numbers of partitions."""
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TopicSpecError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TopicSpecError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if content is None:
        return []
    if not isinstance(content, dict):
        raise TopicSpecError(f"{path}: write one line for each topic, such as `orders: 12`")
    try:
        return [check_topic(name, _read_partitions(entry)) for name, entry in content.items()]
    except TopicSpecError as error:
        raise TopicSpecError(f"{path}: {error}") from error


def merge_topics(specs: Iterable[TopicSpec]) -> list[TopicSpec]:
    """Each topic once. Raises ``TopicSpecError`` where one is asked for with two counts."""
    merged: dict[str, TopicSpec] = {}
    for spec in specs:
        known = merged.setdefault(spec.name, spec)
        if known != spec:
            raise TopicSpecError(
                f"topic {spec.name} is asked for with {known.partitions} and with "
                f"{spec.partitions} partitions"
            )
    return list(merged.values())


def _read_partitions(entry: object) -> object:
    if isinstance(entry, dict) and set(entry) == {"partitions"}:
        return entry["partitions"]
    return entry
