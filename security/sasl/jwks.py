"""The public keys that tokens are signed with, from a JSON Web Key Set (RFC 7517)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

JWKS_BYTES_MAX: Final = 1024 * 1024
KEYS_MAX: Final = 1_000
RSA_BITS_MIN: Final = 2_048
RSA_BITS_MAX: Final = 8_192
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES: Final = {"secp256r1": ("ES256",), "secp384r1": ("ES384",), "secp521r1": ("ES512",)}
ALGORITHMS: Final = (*_RSA, "ES256", "ES384", "ES512", "EdDSA")
"""Those of signatures with a public key: whoever can check a token cannot make one."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key and the algorithms that it may be used with."""

    key: Any
    algorithms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeySet:
    """Public keys by their id; ``only`` is the key of a set that has but one."""

    by_id: Mapping[str, VerificationKey]
    only: VerificationKey | None = None

    def find(self, key_id: str | None) -> VerificationKey | None:
        """The key with this id; a token without an id may be signed with the only key."""
        return self.only if key_id is None else self.by_id.get(key_id)


NO_KEYS: Final = KeySet({})


def parse_jwks(content: bytes) -> KeySet:
    """Read a set of keys. Raises ``ValueError`` if none of them can be used.

    Keys for other purposes, secret keys and those that are too weak are left out.
    """
    if len(content) > JWKS_BYTES_MAX:
        raise ValueError(f"it has more than {JWKS_BYTES_MAX} bytes")
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    rows = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(rows, list):
        raise ValueError('it has no list "keys"')
    by_id: dict[str, VerificationKey] = {}
    usable: list[VerificationKey] = []
    for row in rows[:KEYS_MAX]:
        key = _read_key(row) if isinstance(row, dict) else None
        if key is None:
            continue
        usable.append(key)
        if isinstance(row.get("kid"), str):
            by_id.setdefault(row["kid"], key)
    if not usable:
        raise ValueError("it has no public key for signatures that can be used")
    return KeySet(by_id, usable[0] if len(usable) == 1 else None)


def _read_key(row: dict[str, Any]) -> VerificationKey | None:
    """One key; ``None`` if it is not for signatures or cannot be used."""
    if row.get("use", "sig") != "sig" or row.get("kty") not in ("RSA", "EC", "OKP"):
        return None
    said = row.get("alg")
    try:
        key = jwt.PyJWK({name: row[name] for name in row if name != "alg"}).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    algorithms = _find_algorithms(key)
    if said is not None:
        algorithms = tuple(each for each in algorithms if each == said)
    return VerificationKey(key, algorithms) if algorithms else None


def _find_algorithms(key: Any) -> tuple[str, ...]:
    """The algorithms that a public key of this type is for: a private one has no place here."""
    match key:
        case RSAPublicKey() if RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX:
            return _RSA
        case EllipticCurvePublicKey():
            return _CURVES.get(key.curve.name, ())
        case Ed25519PublicKey():
            return ("EdDSA",)
        case _:
            return ()
