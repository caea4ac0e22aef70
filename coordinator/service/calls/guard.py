"""Conversion of exceptions to gRPC statuses that do not expose server internals."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Any

import grpc
import grpc.aio

from coordinator.runtime.as_of.history_reads import HistoryError
from coordinator.service.wire.error_statuses import (
    DETAILS_KEY,
    PUSHBACK_KEY,
    STATUS_OF,
    compute_status,
)
from model.errors import GroupError, ThrottlingQuotaExceeded

_LOG = logging.getLogger(__name__)

_GRPCS_OWN = (grpc.aio.AbortError, grpc.aio.InternalError)
"""Raised by gRPC when the call was aborted, or its client disconnected before that."""


class Guard:
    """Async context manager that converts exceptions of a call to its status.

    A ``GroupError`` ends the call with its own status; any other exception is logged, and the
    client sees INTERNAL. ``about`` goes into the metadata of ``ErrorInfo``.
    """

    __slots__ = ("_about", "_context")

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any], **about: str) -> None:
        self._context = context
        self._about = about

    async def __aenter__(self) -> None:
        pass

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, GroupError):
            about = {key: value for key, value in self._about.items() if value}
            if isinstance(error, HistoryError):
                about.update(error.about)
            status = compute_status(error, about)
            trailers: tuple[tuple[str, str | bytes], ...]
            trailers = ((DETAILS_KEY, status.SerializeToString()),)
            if isinstance(error, ThrottlingQuotaExceeded):
                trailers += ((PUSHBACK_KEY, str(error.retry_after_ms)),)
            await self._context.abort(STATUS_OF[error.code], status.message, trailers)
        elif isinstance(error, Exception) and not isinstance(error, _GRPCS_OWN):
            _LOG.error("grpc_call_failed", exc_info=error)
            message = "internal error; see the server log"
            await self._context.abort(grpc.StatusCode.INTERNAL, message)
