"""Signed tokens for tests of OAUTHBEARER, and the keys by which a server knows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

ISSUER: Final = "https://issuer.test"
AUDIENCE: Final = "kafka"
LIFETIME_S: Final = 3_600


class TokenIssuer:
    """Signs tokens with a key of its own; ``jwks`` is the file of the keys."""

    def __init__(self, folder: Path, key_id: str = "one") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.jwks = folder / "jwks.json"
        self._folder = folder
        self._key_id = key_id
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        public = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        keys = [{**public, "kid": key_id, "use": "sig", "alg": "RS256"}]
        self.jwks.write_text(json.dumps({"keys": keys}))

    def make(self, subject: str, now_s: int, **claims: Any) -> str:
        """A token of the subject; ``claims`` come in place of those that it has."""
        usual = {
            "sub": subject,
            "iss": ISSUER,
            "aud": AUDIENCE,
            "iat": now_s,
            "exp": now_s + LIFETIME_S,
            "scope": "kafka",
        }
        return jwt.encode(usual | claims, self._key, "RS256", {"kid": self._key_id})

    def write(self, subject: str, now_s: int, **claims: Any) -> Path:
        """As ``make``, into a file with the name of the subject."""
        path = self._folder / f"{subject}.jwt"
        path.write_text(self.make(subject, now_s, **claims))
        return path
