"""The topics of the cluster that wrote a log, from a file."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any

from cli.errors import CommandError, ExitCode
from model.ids import ZERO_TOPIC_ID, TopicId, TopicName
from model.log.side_records import TopicSideValue
from wording.topics import TopicSpecError, check_racks_of, check_topic

KnownTopics = dict[TopicName, TopicSideValue]

_HINT = "write a list of topics, each with `name`, `id` and `partitions`"


def read_known_topics(path: Path) -> KnownTopics:
    """Read topics from a YAML or JSON file: a list of mappings with name, id and partitions.

    ``racks``, a list of names for each partition, is optional. An id is in Kafka's form (22
    characters of base64) or in hex. Raises ``CommandError`` with exit code 2.
    """
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _compute_error(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise _compute_error(
            f"{path} is neither YAML nor JSON: {' '.join(str(error).split())}"
        ) from error
    if isinstance(content, dict) and set(content) == {"topics"}:
        content = content["topics"]
    if not isinstance(content, list):
        raise _compute_error(f"{path}: {_HINT}")
    topics: KnownTopics = {}
    try:
        for entry in content:
            name, topic = _read_topic(entry)
            if name in topics:
                raise TopicSpecError(f"topic {name} occurs twice")
            topics[name] = topic
    except TopicSpecError as error:
        raise _compute_error(f"{path}: {error}") from error
    return topics


def parse_topic_id(text: object) -> TopicId:
    """Parse 16 bytes of base64, with or without padding, or hex, with or without dashes."""
    if isinstance(text, str):
        try:
            if len(text) in (22, 24):
                found = base64.urlsafe_b64decode(text.rstrip("=") + "==")
            else:
                found = bytes.fromhex(text.replace("-", ""))
        except (ValueError, binascii.Error):
            found = b""
        if len(found) == len(ZERO_TOPIC_ID) and found != ZERO_TOPIC_ID:
            return TopicId(found)
    raise TopicSpecError(f"{text!r} is not a topic id, such as bw5pX9ilSquxU3RvBSpXVw")


def _read_topic(entry: Any) -> tuple[TopicName, TopicSideValue]:
    if not isinstance(entry, dict) or not {"name", "id", "partitions"} <= set(entry):
        raise TopicSpecError(f"{entry!r}: {_HINT}")
    spec = check_racks_of(check_topic(entry["name"], entry["partitions"]), entry.get("racks", []))
    topic_id = parse_topic_id(entry["id"])
    return TopicName(spec.name), TopicSideValue(topic_id, spec.partitions, spec.racks or ())


def _compute_error(message: str) -> CommandError:
    return CommandError(message, ExitCode.USAGE)
