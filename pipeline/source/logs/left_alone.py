"""Files beside the segments that are not part of the log: reported, so that they are not missed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from storage.segments.folder import TOPIC

_SHOWN = 5
_OF_PARTITION = re.compile(
    r"\d{20}\.(log|index|timeindex|txnindex|snapshot|log\.deleted|index\.deleted|"
    r"timeindex\.deleted|txnindex\.deleted)|leader-epoch-checkpoint|partition\.metadata"
)
_OF_BROKER = re.compile(
    r".+-\d{1,5}(\.[0-9a-f]{32}-(delete|future|stray))?|[\w-]*checkpoint|meta\.properties|"
    r"bootstrap\.checkpoint|\.lock|\.kafka_cleanshutdown|muster-side\.json"
)
"""Files of a broker's log folder, including other topics, and of an export."""


def list_left_alone(path: Path) -> list[str]:
    """Files and folders at a path that are not read and that a broker does not write."""
    if not path.is_dir():
        return []
    partitions = [entry for entry in path.iterdir() if _is_partition(entry)]
    if not partitions:
        return sorted(_list_foreign(path, path, _OF_PARTITION))
    found = set(_list_foreign(path, path, _OF_BROKER))
    for folder in partitions:
        found.update(_list_foreign(path, folder, _OF_PARTITION))
    return sorted(found)


def note_left_alone(path: Path) -> tuple[str, ...]:
    """A note that names them, or nothing."""
    names = list_left_alone(path)
    if not names:
        return ()
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (f"not part of the log: {', '.join(names[:_SHOWN])}{more}",)


def _is_partition(entry: Path) -> bool:
    return entry.is_dir() and re.fullmatch(rf"{TOPIC}-\d{{1,5}}", entry.name) is not None


def _list_foreign(root: Path, folder: Path, known: re.Pattern[str]) -> Iterator[str]:
    for entry in folder.iterdir():
        if known.fullmatch(entry.name) is None:
            yield str(entry.relative_to(root))
