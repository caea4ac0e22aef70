"""SaslHandshake (17), versions 0 and 1: names the mechanism of the tokens that follow.

After version 0 these come without a request header. Needs no right. On a listener whose clients do
not authenticate, and where it is not due, it gets ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from typing import Any

from gateway.api import Api, RequestContext
from gateway.codec.kio_schema import response_schema
from model.errors import ErrorCode

KEY = 17
wire = response_schema(KEY)


def handle(context: RequestContext, request: Any) -> None:
    """Begin to authenticate, for the first time or again."""
    sasl = context.client.sasl
    if sasl is None:
        context.reply(_make(ErrorCode.ILLEGAL_SASL_STATE))
        return

    def reply(code: ErrorCode) -> None:
        mechanisms = () if code is ErrorCode.ILLEGAL_SASL_STATE else sasl.mechanisms
        context.reply(_make(code, mechanisms))

    sasl.shake_hands(request.mechanism, is_raw=context.version == 0, reply=reply)


def _make(code: ErrorCode, mechanisms: tuple[str, ...] = ()) -> Any:
    return wire.SaslHandshakeResponse(error_code=code, mechanisms=mechanisms)


def failed(context: RequestContext, request: Any, code: ErrorCode, message: str) -> Any:
    """Fail the request."""
    return _make(code)


API = Api(key=KEY, name="SaslHandshake", versions=range(2), handler=handle, failed=failed)
