"""Who clients claim to be in their messages, for logins that somebody else verifies.

A claim counts only once the verifier has said yes, and so only if it reads the message in the same
way: whatever two readers could read differently is refused.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from model.access.scram import ScramMechanism
from security.identity import Identity
from security.sasl.conversation import OAUTHBEARER, NotAuthenticated, decode_text
from security.sasl.plain import PLAIN

TOKEN_BYTES_MAX: Final = 32 * 1024
NAME_CHARS_MAX: Final = 1_024
_TIME_MAX_S: Final = 253_402_300_799
_SASL_NAME: Final = r"(?:[^=,]|=2C|=3D)+"
_CLIENT_FIRST: Final = re.compile(
    rf"[ny],(?:a=(?P<as>{_SASL_NAME}))?,n=(?P<name>{_SASL_NAME}),r=[\x21-\x2b\x2d-\x7e]+"
    r"(?P<extensions>(?:,[A-Za-z]+=[^,]+)*)"
)
_TOKEN_AUTH: Final = "tokenauth="
_BEARER: Final = re.compile(r"bearer +([\w~+/.-]+=*)", re.ASCII | re.IGNORECASE)
_HEAD: Final = re.compile(rf"[ny],(?:a=(?P<as>{_SASL_NAME}))?,")


@dataclass(frozen=True, slots=True)
class NameReader:
    """Reads who is named in a mechanism's first message, and tells a verifier's last token.

    ``read`` raises ``NotAuthenticated``. ``is_last`` takes the number of the client's message, from
    1, and the verifier's answer to it.
    """

    read: Callable[[bytes], Identity]
    is_last: Callable[[int, bytes], bool]


def make_name_readers(sub_claim: str = "sub") -> Mapping[str, NameReader]:
    """The readers by mechanism. ``sub_claim``: the claim of a token that names its principal."""
    scram = NameReader(_read_scram, lambda number, token: number == 2 and token[:2] == b"v=")
    readers = {each.value: scram for each in ScramMechanism}
    readers[PLAIN] = NameReader(_read_plain, lambda number, _token: number == 1)
    # A refused bearer token is answered with a reason, which the client confirms by one more.
    readers[OAUTHBEARER] = NameReader(
        partial(_read_bearer, sub_claim), lambda number, token: number == 1 and not token
    )
    return readers


def read_token(sub_claim: str, token: str, authorization_id: str = "") -> Identity:
    """Whom a bearer token claims to be about, until it ends. Raises ``NotAuthenticated``."""
    parts = token.split(".")
    if len(token) > TOKEN_BYTES_MAX or len(parts) != 3:
        raise NotAuthenticated("the token is not a JWT")
    payload = parts[1]
    try:
        decoded = base64.b64decode(payload + "=" * (-len(payload) % 4), b"-_", validate=True)
        claims = json.loads(decoded, object_pairs_hook=_make_claims)
    except (ValueError, RecursionError):
        raise NotAuthenticated("the token's claims are malformed") from None
    if not isinstance(claims, dict):
        raise NotAuthenticated("the token has no claims")
    value, expires_s = claims.get(sub_claim), claims.get("exp")
    name = value if isinstance(value, str) else ""
    if name != name.strip():  # Some verifiers strip it, others do not.
        raise NotAuthenticated("the token's name begins or ends with blanks")
    if not isinstance(expires_s, int | float) or not 0 <= expires_s <= _TIME_MAX_S:
        raise NotAuthenticated("the token does not say when it expires")
    return _check_name(name, authorization_id, int(expires_s * 1_000))


def _read_plain(message: bytes) -> Identity:
    parts = decode_text(message, TOKEN_BYTES_MAX).split("\0")
    if len(parts) != 3:
        raise NotAuthenticated("the token is malformed")
    authorization_id, user, _ = parts
    return _check_name(user, authorization_id)


def _read_scram(message: bytes) -> Identity:
    found = _CLIENT_FIRST.fullmatch(decode_text(message, TOKEN_BYTES_MAX))
    if found is None:
        raise NotAuthenticated("the message is malformed")
    if any(each.lower().startswith(_TOKEN_AUTH) for each in found["extensions"].split(",")):
        # The message names the token alone, and the principal is its owner.
        raise NotAuthenticated(
            "a delegation token",
            "Authentication failed: delegation tokens cannot be used here, as the name of their "
            "owner is not known",
        )
    return _check_name(_unescape(found["name"]), _unescape(found["as"] or ""))


def _read_bearer(sub_claim: str, message: bytes) -> Identity:
    head, *pairs = decode_text(message, TOKEN_BYTES_MAX).split("\1")
    found = _HEAD.fullmatch(head)
    tokens = [pair.partition("=")[2] for pair in pairs if pair.partition("=")[0] == "auth"]
    bearer = _BEARER.fullmatch(tokens[0]) if len(tokens) == 1 else None
    if found is None or bearer is None:
        raise NotAuthenticated("the message is malformed")
    return read_token(sub_claim, bearer[1], _unescape(found["as"] or ""))


def _check_name(
    name: str, authorization_id: str = "", expires_at_ms: int | None = None
) -> Identity:
    if not name or len(name) > NAME_CHARS_MAX or not name.isprintable():
        raise NotAuthenticated("the message names no user")
    if authorization_id not in ("", name):
        raise NotAuthenticated("the client asks to act as another user")
    return Identity(f"User:{name}", expires_at_ms=expires_at_ms)


def _unescape(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _make_claims(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    claims = dict(pairs)
    if len(claims) != len(pairs):
        raise ValueError("a claim is there twice")
    return claims
