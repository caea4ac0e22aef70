"""Errors of reading a log; each message is one line."""

from __future__ import annotations


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


class DataLoss(SourceError):
    """Requested records are gone, and ``failOnDataLoss`` is not false."""


class LogReplaced(SourceError):
    """A file was replaced between planning and reading; a retry helps."""
