"""What a client is told of a bug of ours."""

from __future__ import annotations

import logging

from gateway.api import RequestContext
from model.errors import ErrorCode

logger = logging.getLogger("muster.gateway")


def encode_failure(context: RequestContext, peer: str, error: BaseException) -> bytes | None:
    """Log what a handler or its callback raised; the body of the answer that says so.

    ``None`` where the request was answered already, or its API has no way to say it.
    """
    logger.error("kafka_handler_failed api=%s peer=%s", context.api.name, peer, exc_info=error)
    failed = context.api.failed
    if failed is None or context.answered:
        return None
    try:
        code, message = ErrorCode.UNKNOWN_SERVER_ERROR, "the server failed; see its log"
        response = failed(context, context.request, code, message)
        return response if type(response) is bytes else context.route.encode(response)
    except Exception:
        logger.exception("kafka_error_response_failed api=%s", context.api.name)
        return None
