"""Resolves the path of a log as written for a shell, for Hadoop or for a browser."""

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
    """The absolute path of a log on this machine. Raise ``NotALog`` if it does not exist.

    An existing path is taken literally. Otherwise ``~`` is the home folder, as in ``--path=~/log``,
    which shells do not expand, and ``file:`` precedes a path in Hadoop's form (``file:/a b``) or
    with ``%20`` for a space.
    """
    for path in _compute_candidates(text):
        if _is_there(path):
            return path.absolute()
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[1].lower() != "file":
        raise NotALog(
            f"{text} does not exist: a log is read from a local path, so mount what {scheme[1]}: "
            "names, or copy it"
        )
    hint = "; patterns are not expanded" if _PATTERN.search(text) else ""
    raise NotALog(f"{text} does not exist{hint}")


def is_of_other_system(text: str) -> bool:
    """Whether a path is for Hadoop or a connector, such as ``hdfs://`` or ``kafka://``."""
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
            # The user is unknown on this machine.
            return


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        # The name is too long, has a zero byte, or is in an inaccessible folder.
        return False
