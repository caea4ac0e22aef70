"""Errors of commands: a line on standard error, and an exit code that scripts can distinguish."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from wording.errors import InputError


class ExitCode(IntEnum):
    """Exit codes of `muster`."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    PRECONDITION = 4
    UNREACHABLE = 5
    HALF_APPLIED = 70
    """A bug stopped a command after its first change (EX_SOFTWARE of sysexits)."""
    WRITE_FAILED = 74
    """The log could not be written (EX_IOERR of sysexits)."""
    INTERRUPTED = 130


class CommandError(Exception):
    """A command failed; ``message`` is for users, one line for each mistake."""

    def __init__(self, message: str, exit_code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


@contextmanager
def usage_errors() -> Iterator[None]:
    """Convert what is wrong with a user's text into a ``CommandError`` of exit code 2."""
    try:
        yield
    except InputError as error:
        raise CommandError(str(error), ExitCode.USAGE) from None
