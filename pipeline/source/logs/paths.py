"""A path of a log as people write it: as their shell, Hadoop or a browser has it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from pipeline.source.errors import NotALog

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):")
_FILE = re.compile(r"^file:(?://(?:localhost)?)?(/.*)$", re.IGNORECASE)
_PATTERN = re.compile(r"[*?{}\[\]]")


def find_path(text: str) -> Path:
    """Where a log is on this machine, absolute. Raises ``NotALog`` where there is nothing.

    A path is taken as it is where that is there. Else ``~`` is the home, as behind ``--path=``
    where no shell sees it, and ``file:`` is followed by a path as Hadoop writes it (``file:/a b``),
    or by one with ``%20`` for its space.
    """
    for path in _compute_candidates(text):
        if _is_there(path):
            return path.absolute()
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[1].lower() != "file":
        raise NotALog(
            f"{text} does not exist: a log is read from paths, so mount what {scheme[1]}: names, "
            "or copy it"
        )
    hint = "; patterns are not expanded" if _PATTERN.search(text) else ""
    raise NotALog(f"{text} does not exist{hint}")


def is_of_other_system(text: str) -> bool:
    """Whether a path is for Hadoop or for a connector, such as ``hdfs://`` or ``kafka://``."""
    scheme = _SCHEME.match(text)
    return scheme is not None and scheme[1].lower() != "file" and not _is_there(Path(text))


def _compute_candidates(text: str) -> Iterator[Path]:
    yield Path(text)
    of_file = _FILE.match(text)
    if of_file is not None:
        yield Path(of_file[1])
        yield Path(unquote(of_file[1]))
    if text.startswith("~"):
        try:
            yield Path(text).expanduser()
        except RuntimeError:
            # Of somebody whom this machine does not know.
            return


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        # Too long for a name, in a folder that may not be read, or with a zero byte.
        return False
