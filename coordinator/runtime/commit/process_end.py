"""What ends the process: memory is not what the log is, and only a restart helps."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NoReturn

import structlog

log = structlog.get_logger()

EXIT_FAILED_WRITE = 74
EXIT_HALF_APPLIED = 70

_EVIDENCE_CHARACTERS_MAX = 100_000


class HalfApplied(Exception):
    """Something failed on its way into memory, after the first of it was there: a bug.

    It says what was to be applied; the bug is its cause.
    """

    def __init__(self, applied: object, bug: Exception) -> None:
        super().__init__(repr(applied)[:_EVIDENCE_CHARACTERS_MAX])
        self.__cause__ = bug


def exit_process(
    failure: BaseException, tell: Callable[[BaseException], None] | None = None
) -> NoReturn:
    """What a failed write comes to, or what was ``HalfApplied``; each has its exit code.

    ``tell`` says it to people, after the server's log has it.
    """
    code = EXIT_FAILED_WRITE
    try:
        if isinstance(failure, HalfApplied):
            code = EXIT_HALF_APPLIED
            log.critical("applying_failed", applied=str(failure), exc_info=failure.__cause__)
        else:
            log.critical("log_write_failed", cause=repr(failure))
        if tell is not None:
            tell(failure)
    finally:
        # Where the disk is full nothing may be written here either; that changes nothing.
        os._exit(code)
