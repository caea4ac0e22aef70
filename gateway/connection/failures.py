"""The error response for a bug in a handler."""

from __future__ import annotations

import logging

from gateway.api import RequestContext
from model.errors import ErrorCode

logger = logging.getLogger("muster.gateway")


def encode_failure(context: RequestContext, peer: str, error: BaseException) -> bytes | None:
    """Log an exception of a handler or callback, and encode the error response's body.

    ``None`` if the request is answered already or its API has no error response.
    """
    logger.error("kafka_handler_failed api=%s peer=%s", context.api.name, peer, exc_info=error)
    failed = context.api.failed
    if failed is None or context.answered:
        return None
    try:
        code, message = ErrorCode.UNKNOWN_SERVER_ERROR, "The server failed; see the server's log."
        response = failed(context, context.request, code, message)
        return response if type(response) is bytes else context.route.encode(response)
    except Exception:
        logger.exception("kafka_error_response_failed api=%s", context.api.name)
        return None
