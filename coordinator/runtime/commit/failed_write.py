"""A write that fails ends the process: memory is ahead of the log."""

from __future__ import annotations

import os
from typing import NoReturn

import structlog

log = structlog.get_logger()

EXIT_FAILED_WRITE = 74


def exit_process(failure: BaseException) -> NoReturn:
    """What a failed write comes to: memory is ahead of the log, and only a restart helps."""
    try:
        log.critical("log_write_failed", cause=repr(failure))
    finally:
        os._exit(EXIT_FAILED_WRITE)
