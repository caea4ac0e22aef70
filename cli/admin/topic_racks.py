"""Parses the racks of a topic's replicas, from a command line or a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cli.topic_spec import read_yaml
from wording.topics import Racks, TopicSpecError, check_names, check_racks

UNKNOWN = "-"


def parse_racks(texts: Sequence[str]) -> Racks:
    """Parse one text for each partition: names separated by commas, or ``-`` for unknown."""
    return tuple(
        () if text == UNKNOWN else check_names(number, text.split(","))
        for number, text in enumerate(texts)
    )


def read_racks_file(path: Path) -> Racks:
    """Read a YAML or JSON list that has a list of names for each partition."""
    content = read_yaml(path)
    try:
        return check_racks(content)
    except TopicSpecError as error:
        raise TopicSpecError(f"{path}: {error}") from error


def render_racks(names: Sequence[str]) -> str:
    """Render racks as ``parse_racks`` reads them."""
    return ",".join(names) or UNKNOWN
