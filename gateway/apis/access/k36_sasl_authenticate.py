"""SaslAuthenticate (36), versions 0 to 2: a token of the mechanism that the handshake named.

Needs no right. On a listener whose clients do not authenticate, and after they have, it gets
ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from typing import Any

from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from gateway.sasl.logins import TokenAnswer
from model.errors import ErrorCode

KEY = 36
wire = response_schema(KEY)
_TOO_LATE = TokenAnswer(
    ErrorCode.ILLEGAL_SASL_STATE,
    "SaslAuthenticate request received after successful authentication",
)


def handle(context: RequestContext, request: Any) -> None:
    """Pass the token on; the answer may come later."""
    sasl = context.client.sasl
    if sasl is None or sasl.is_done:
        context.reply(_make(_TOO_LATE))
        return
    sasl.authenticate(request.auth_bytes, lambda answer: context.reply(_make(answer)))


def _make(answer: TokenAnswer) -> Any:
    return wire.SaslAuthenticateResponse(
        error_code=answer.code,
        error_message=answer.message,
        auth_bytes=answer.token,
        session_lifetime=answer.session_lifetime_ms,
    )


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the request."""
    return _make(TokenAnswer(code, message))


API = Api(key=KEY, name="SaslAuthenticate", versions=range(3), handler=handle, failed=failed)
