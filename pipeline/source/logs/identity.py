"""The identity of segments, from files beside them: the topic id, or the cluster id."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_PLACES = (
    ("topic", "partition.metadata", re.compile(r"^topic_id: *(\S+)$", re.MULTILINE)),
    ("cluster", "../meta.properties", re.compile(r"^cluster\.id=(\S+)$", re.MULTILINE)),
    ("cluster", "../muster-side.json", re.compile(r'"cluster_id": *"([^"]+)"')),
)
"""A broker has the first in each partition folder; an export of Muster has the last."""

_READ_BYTES = 4 << 10
"""The id is in the first lines, and an export may have many side records."""


def find_identity(folders: Iterable[Path]) -> str | None:
    """The identity of the first partition folder that has one, such as ``topic:…``."""
    for folder in folders:
        for kind, name, pattern in _PLACES:
            found = pattern.search(_read(folder / name))
            if found:
                return f"{kind}:{found[1]}"
    return None


def is_other(one: str | None, other: str | None) -> bool:
    """Whether both are known, of one kind, and different."""
    if one is None or other is None or one == other:
        return False
    return one.partition(":")[0] == other.partition(":")[0]


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(_READ_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
