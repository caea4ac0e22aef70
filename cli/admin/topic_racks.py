"""Where the replicas of a topic are, as people write it: on a command line, or in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cli.topic_spec import Racks, TopicSpecError, check_names, check_racks, read_yaml

UNKNOWN = "-"


def parse_racks(texts: Sequence[str]) -> Racks:
    """A text for each partition: names with commas between them, ``-`` for none that is known."""
    return tuple(
        () if text == UNKNOWN else check_names(number, text.split(","))
        for number, text in enumerate(texts)
    )


def read_racks_file(path: Path) -> Racks:
    """A YAML or JSON list with a list of names for each partition."""
    content = read_yaml(path)
    try:
        return check_racks(content)
    except TopicSpecError as error:
        raise TopicSpecError(f"{path}: {error}") from error


def render_racks(names: Sequence[str]) -> str:
    """As ``parse_racks`` reads them."""
    return ",".join(names) or UNKNOWN
