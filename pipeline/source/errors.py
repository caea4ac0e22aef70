"""What a reader of a log raises; each message is one line for people."""

from __future__ import annotations


class SourceError(Exception):
    """The log cannot be read as it was asked for."""


class OptionError(SourceError, ValueError):
    """An option is unknown, or its value cannot be."""


class NotALog(SourceError):
    """The path holds neither a store nor segments, or does not exist."""


class NewerStore(SourceError):
    """A newer version of Muster wrote the store."""


class MissingConnector(SourceError):
    """Spark has no source for a path of this kind."""


class DataLoss(SourceError):
    """Records that were asked for are gone, and ``failOnDataLoss`` is not false."""


class LogReplaced(SourceError):
    """A file became another one between its planning and its reading; trying again helps."""
