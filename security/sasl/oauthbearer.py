"""OAUTHBEARER (RFC 7628): a signed token, and extensions, which nothing here uses."""

from __future__ import annotations

import re
from typing import Final

from security.sasl.bearer_tokens import BearerVerifier
from security.sasl.conversation import (
    OAUTHBEARER,
    Authenticated,
    NotAuthenticated,
    decode_text,
)

TOKEN_BYTES_MAX: Final = 32 * 1024
_SEPARATOR: Final = "\1"
_KEY: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
_BEARER: Final = re.compile(r"bearer +([\w~+/.-]+=*)", re.ASCII | re.IGNORECASE)


class OauthBearer:
    """The mechanism, for tokens that the verifier accepts."""

    def __init__(self, verifier: BearerVerifier) -> None:
        self._verifier = verifier

    @property
    def name(self) -> str:
        return OAUTHBEARER

    def begin(self, nonce: str) -> OauthBearer:
        """A conversation of one message, which keeps nothing."""
        return self

    def answer(self, token: bytes, now_s: float) -> Authenticated:
        """Check the client's only message."""
        authorization_id, bearer = _parse(decode_text(token, TOKEN_BYTES_MAX))
        identity = self._verifier.verify(bearer, now_s)
        if authorization_id and f"User:{authorization_id}" != identity.principal:
            raise NotAuthenticated("the client asks to act as another user")
        return Authenticated(identity)


def _parse(message: str) -> tuple[str, str]:
    """The authorization id, empty for none, and the token of the client's message."""
    head, *pairs = message.split(_SEPARATOR)
    if len(pairs) < 3 or pairs[-2:] != ["", ""]:
        raise NotAuthenticated("the message is malformed")
    flag, *rest = head.split(",")
    if flag not in ("n", "y") or len(rest) != 2 or rest[1]:
        raise NotAuthenticated("the message is malformed")
    if rest[0] and not rest[0].startswith("a="):
        raise NotAuthenticated("the message is malformed")
    authorization_id = rest[0].removeprefix("a=").replace("=2C", ",").replace("=3D", "=")
    found: dict[str, str] = {}
    for pair in pairs[:-2]:
        key, equals, value = pair.partition("=")
        is_valid = equals and _KEY.fullmatch(key) and _VALUE.fullmatch(value)
        if not is_valid or key in found:
            raise NotAuthenticated("the message is malformed")
        found[key] = value
    bearer = _BEARER.fullmatch(found.get("auth", ""))
    if bearer is None:
        raise NotAuthenticated("the message has no bearer token")
    return authorization_id, bearer[1]
