"""Checks signed tokens (JWT): signature, issuer, audience, times, and who they are about.

Nothing of a token is believed before its signature is checked, but its key id, by which a key is
looked up. The key says which algorithms may be used with it, not the token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt

from security.identity import Identity
from security.sasl.conversation import NotAuthenticated, UnknownKey
from security.sasl.jwks import ALGORITHMS, KeySet

TOKEN_BYTES_MAX: Final = 16 * 1024
HEADER_BYTES_MAX: Final = 2 * 1024
PRINCIPAL_CHARS_MAX: Final = 1_024
SCOPES_MAX: Final = 100
SCOPE_CHARS_MAX: Final = 256
_TIME_MAX: Final = 253_402_300_799
"""The last second of the year 9999."""
_COMPACT: Final = re.compile(r"[\w-]+\.[\w-]+\.[\w-]+", re.ASCII)
_JWS: Final = jwt.PyJWS(list(ALGORITHMS))


@dataclass(frozen=True, slots=True)
class BearerRules:
    """What a token must say. Without ``audiences`` a token must have none, as in Kafka."""

    issuer: str | None = None
    audiences: tuple[str, ...] = ()
    clock_skew_s: int = 30
    sub_claim: str = "sub"
    scope_claim: str = "scope"


class BearerVerifier:
    """Says who a token is about, by the keys of this moment."""

    def __init__(self, keys: Callable[[], KeySet], rules: BearerRules) -> None:
        self._keys = keys
        self._rules = rules

    def verify(self, token: str, now_s: float) -> Identity:
        """Whom the token is about, at ``now_s`` seconds since 1970.

        Raises ``NotAuthenticated``: its reason is for the log and has nothing from the token; it is
        an ``UnknownKey`` if newer keys may help.
        """
        if len(token) > TOKEN_BYTES_MAX:
            raise NotAuthenticated(f"the token is longer than {TOKEN_BYTES_MAX} bytes")
        if _COMPACT.fullmatch(token) is None:
            raise NotAuthenticated("the token is not a signed JWT")
        algorithm, key_id = _read_header(token)
        if algorithm not in ALGORITHMS:
            raise NotAuthenticated("the token's algorithm is not allowed")
        key = self._keys().find(key_id)
        if key is None:
            raise UnknownKey("the token's key is unknown")
        if algorithm not in key.algorithms:
            raise NotAuthenticated("the token's algorithm is not that of its key")
        claims = _decode(token, key.key, key.algorithms)
        expires_s = self._check_times(claims, now_s)
        self._check_origin(claims)
        principal = _read_principal(claims.get(self._rules.sub_claim))
        groups = _read_groups(claims.get(self._rules.scope_claim))
        return Identity(principal, groups, int(expires_s * 1_000))

    def _check_times(self, claims: Mapping[str, Any], now_s: float) -> float:
        """Check when the token is valid; return when it expires."""
        skew = self._rules.clock_skew_s
        expires = _read_time(claims, "exp")
        if expires is None or _read_time(claims, "iat") is None:
            raise NotAuthenticated("the token lacks exp or iat")
        if now_s - skew >= expires:
            raise NotAuthenticated("the token has expired")
        begins = _read_time(claims, "nbf")
        if begins is not None and now_s + skew < begins:
            raise NotAuthenticated("the token is not valid yet")
        return expires

    def _check_origin(self, claims: Mapping[str, Any]) -> None:
        rules = self._rules
        if rules.issuer is not None and claims.get("iss") != rules.issuer:
            raise NotAuthenticated("the token has another issuer")
        audience = claims.get("aud")
        if audience is None:
            if rules.audiences:
                raise NotAuthenticated("the token has no audience")
            return
        named = [audience] if isinstance(audience, str) else audience
        if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
            raise NotAuthenticated("the token's audience is neither text nor a list of texts")
        if not rules.audiences:
            raise NotAuthenticated(
                "the token has an audience, and sasl.oauthbearer.expected.audience is not set"
            )
        if not set(named) & set(rules.audiences):
            raise NotAuthenticated("the token has another audience")


def _read_header(token: str) -> tuple[object, str | None]:
    """The algorithm and the key id that the token names."""
    head = token.partition(".")[0]
    if len(head) > HEADER_BYTES_MAX:
        raise NotAuthenticated(f"the token's header is longer than {HEADER_BYTES_MAX} bytes")
    try:
        header = jwt.get_unverified_header(f"{head}..")
    except jwt.PyJWTError:
        raise NotAuthenticated("the token's header is malformed") from None
    return header.get("alg"), header.get("kid")


def _decode(token: str, key: Any, algorithms: tuple[str, ...]) -> Mapping[str, Any]:
    """The claims, whose signature is checked."""
    try:
        # Not ``jwt.decode``, which reads a clock for the times: time is an argument here.
        payload = _JWS.decode(token, key, algorithms)
        claims = json.loads(payload, parse_constant=_refuse_constant)
    except jwt.InvalidSignatureError:
        raise NotAuthenticated("the token's signature is wrong") from None
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise NotAuthenticated("the token is malformed") from None
    if not isinstance(claims, dict):
        raise NotAuthenticated("the token has no claims")
    return claims


def _refuse_constant(_text: str) -> None:
    raise ValueError("not JSON")


def _read_time(claims: Mapping[str, Any], name: str) -> float | None:
    """A time in seconds since 1970; ``None`` if the claim is missing."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotAuthenticated(f"the token's {name} is not a number")
    if not 0 <= value <= _TIME_MAX:
        raise NotAuthenticated(f"the token's {name} is out of range")
    return value


def _read_principal(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if not text or len(text) > PRINCIPAL_CHARS_MAX or not text.isprintable():
        raise NotAuthenticated("the token names no principal in the claim that has to")
    return f"User:{text}"


def _read_groups(value: object) -> tuple[str, ...]:
    """The scopes, as principals that ACLs may name."""
    if value is None:
        return ()
    scopes = value.split() if isinstance(value, str) else value
    if not isinstance(scopes, list) or not all(isinstance(each, str) for each in scopes):
        raise NotAuthenticated("the token's scopes are neither text nor a list of texts")
    named = [each.strip() for each in dict.fromkeys(scopes) if each.strip()]
    if len(named) > SCOPES_MAX:
        raise NotAuthenticated(f"the token has more than {SCOPES_MAX} scopes")
    if any(len(each) > SCOPE_CHARS_MAX or not each.isprintable() for each in named):
        raise NotAuthenticated(f"a scope of the token is longer than {SCOPE_CHARS_MAX} characters")
    return tuple(f"Group:{each}" for each in named)
