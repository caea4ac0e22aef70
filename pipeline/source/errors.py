"""Errors of reading a log; each message is one line."""

from __future__ import annotations

import re


class SourceError(Exception):
    """The log cannot be read as requested."""


class OptionError(SourceError, ValueError):
    """An option is unknown, or its value is invalid."""


class NotALog(SourceError):
    """The path has neither a store nor segments, or does not exist."""


class NewerStore(SourceError):
    """A newer version of Muster wrote the store."""


class MissingConnector(SourceError):
    """Spark has no connector for this kind of path."""


class Unreachable(SourceError):
    """The server does not answer."""


class DataLoss(SourceError):
    """Requested records are gone, and ``failOnDataLoss`` is not false."""


class LogReplaced(SourceError):
    """A file was replaced between planning and reading; a retry helps."""


def find_cause(error: Exception) -> SourceError | None:
    """The source's own error within one of Spark's, whose text has it; ``None`` if it has none."""
    found = re.search(rf"{re.escape(__name__)}\.(\w+): (.*)", str(error))
    if found is None:
        return None
    known = {kind.__name__: kind for kind in SourceError.__subclasses__()}
    return known.get(found[1], SourceError)(found[2])
