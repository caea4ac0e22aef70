"""Ends the process when its memory no longer matches the log; only a restart repairs that."""

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
    """An outcome was applied only in part: a bug, which is the cause of this exception.

    The message shows the outcome.
    """

    def __init__(self, applied: object, bug: Exception) -> None:
        super().__init__(repr(applied)[:_EVIDENCE_CHARACTERS_MAX])
        self.__cause__ = bug


def exit_process(
    failure: BaseException, tell: Callable[[BaseException], None] | None = None
) -> NoReturn:
    """Exit after a failed write, or ``HalfApplied``; each has its own exit code.

    ``tell`` reports the failure to the operator, after it is logged.
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
        # On a full disk this log line may fail too; exit anyway.
        os._exit(code)
