"""Keys, sets of them, and tokens that they sign."""

from __future__ import annotations

import base64
import json
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from security.sasl.bearer_tokens import BearerRules, BearerVerifier
from security.sasl.jwks import KeySet, parse_jwks

NOW_S = 1_800_000_000
ISSUER = "https://issuer.example"
AUDIENCE = "kafka"


@cache
def rsa_key(number: int = 0) -> rsa.RSAPrivateKey:
    """A key for signatures; a new one for each number."""
    return rsa.generate_private_key(65_537, 2_048)


@cache
def ec_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


@cache
def ed_key() -> ed25519.Ed25519PrivateKey:
    return ed25519.Ed25519PrivateKey.generate()


def jwk(private: Any, kid: str | None = "k1", **changes: Any) -> dict[str, Any]:
    """The public half, as it is published."""
    kinds = {
        rsa.RSAPrivateKey: jwt.algorithms.RSAAlgorithm,
        ec.EllipticCurvePrivateKey: jwt.algorithms.ECAlgorithm,
        ed25519.Ed25519PrivateKey: jwt.algorithms.OKPAlgorithm,
    }
    (to_jwk,) = (each.to_jwk for kind, each in kinds.items() if isinstance(private, kind))
    row = json.loads(to_jwk(private.public_key()))
    row.pop("key_ops", None)
    return row | ({} if kid is None else {"kid": kid}) | {"use": "sig"} | changes


def jwks(*rows: dict[str, Any]) -> bytes:
    return json.dumps({"keys": rows}).encode()


def key_set(*rows: dict[str, Any]) -> KeySet:
    return parse_jwks(jwks(*(rows or (jwk(rsa_key()),))))


def claims(**changes: Any) -> dict[str, Any]:
    """Those of a good token; ``None`` takes one away."""
    good = {
        "sub": "alice",
        "iss": ISSUER,
        "aud": AUDIENCE,
        "iat": NOW_S,
        "exp": NOW_S + 600,
        "scope": "read write",
    }
    return {name: value for name, value in (good | changes).items() if value is not None}


def sign(
    key: Any = None, algorithm: str = "RS256", headers: dict[str, Any] | None = None, **changes: Any
) -> str:
    """A token with these claims, signed by the key with the id ``k1`` unless said otherwise."""
    payload = json.dumps(claims(**changes)).encode()
    return sign_bytes(payload, key, algorithm, headers)


def sign_bytes(
    payload: bytes,
    key: Any = None,
    algorithm: str = "RS256",
    headers: dict[str, Any] | None = None,
) -> str:
    header = {"kid": "k1"} if headers is None else headers
    return jwt.PyJWS().encode(payload, key or rsa_key(), algorithm, headers=header)


def unsigned(header: dict[str, Any], payload: bytes, signature: bytes = b"") -> str:
    """A token of any parts."""
    parts = (json.dumps(header).encode(), payload, signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


RULES = BearerRules(issuer=ISSUER, audiences=(AUDIENCE,), clock_skew_s=30)


def verifier(keys: KeySet | None = None, rules: BearerRules = RULES) -> BearerVerifier:
    found = keys or key_set()
    return BearerVerifier(lambda: found, rules)
