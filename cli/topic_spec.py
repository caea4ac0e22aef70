"""Topics in a file."""

from __future__ import annotations

from pathlib import Path

from wording.topics import TopicSpec, TopicSpecError, check_racks_of, check_topic


def read_yaml(path: Path) -> object:
    """Read a YAML file. Raises ``TopicSpecError``."""
    import yaml

    try:
        content: object = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TopicSpecError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise TopicSpecError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    return content


def read_topics_file(path: Path) -> list[TopicSpec]:
    """Read topics from a YAML file that maps each name to its number of partitions.

    A name may also map to ``partitions`` and ``racks``, a list of rack names for each partition.
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


def _read_entry(name: object, entry: object) -> TopicSpec:
    if not isinstance(entry, dict) or not {"partitions"} <= set(entry) <= {"partitions", "racks"}:
        return check_topic(name, entry)
    spec = check_topic(name, entry["partitions"])
    return check_racks_of(spec, entry["racks"]) if "racks" in entry else spec
