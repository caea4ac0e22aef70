"""SASL of Kafka clients: the messages of PLAIN (RFC 4616) and SCRAM (RFC 5802, 7677)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from typing import Final

_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_ITERATIONS_MAX: Final = 1_000_000


class SaslError(Exception):
    """The server's message is not one of the mechanism, or it does not know the password."""


def encode_plain(username: str, password: str) -> bytes:
    """The one message of PLAIN."""
    return f"\0{username}\0{password}".encode()


class ScramClient:
    """The client's side of one SCRAM exchange, without channel binding."""

    def __init__(
        self, mechanism: str, username: str, password: str, nonce: str | None = None
    ) -> None:
        self._hash = _HASHES[mechanism]
        self._password = password
        self._nonce = nonce or secrets.token_urlsafe(24)
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={name},r={self._nonce}"
        self._signature = b""

    def encode_first(self) -> bytes:
        """The client's first message."""
        return f"n,,{self._first}".encode()

    def encode_final(self, server_first: bytes) -> bytes:
        """The client's final message for the server's first one. Raises ``SaslError``."""
        fields = _read_fields(server_first)
        try:
            nonce, salt = fields["r"], base64.b64decode(fields["s"], validate=True)
            iterations = int(fields["i"])
        except (KeyError, ValueError) as error:
            raise SaslError("the server's first SCRAM message is malformed") from error
        if not nonce.startswith(self._nonce) or not 0 < iterations <= _ITERATIONS_MAX:
            raise SaslError("the server's first SCRAM message does not fit the client's")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password.encode(), salt, iterations)
        final = f"c=biws,r={nonce}"
        message = f"{self._first},{server_first.decode()},{final}".encode()
        client_key = self._sign(salted, b"Client Key")
        stored_key = hashlib.new(self._hash, client_key).digest()
        proof = bytes(
            a ^ b for a, b in zip(client_key, self._sign(stored_key, message), strict=True)
        )
        self._signature = self._sign(self._sign(salted, b"Server Key"), message)
        return f"{final},p={base64.b64encode(proof).decode()}".encode()

    def check_server(self, server_final: bytes) -> None:
        """Check that the server knows the password too. Raises ``SaslError``."""
        fields = _read_fields(server_final)
        if "e" in fields:
            raise SaslError(f"the server refuses the password: {fields['e']}")
        expected = base64.b64encode(self._signature).decode()
        if not hmac.compare_digest(fields.get("v", "").encode(), expected.encode()):
            raise SaslError("the server does not know the password: its signature is wrong")

    def _sign(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._hash).digest()


def _read_fields(message: bytes) -> dict[str, str]:
    try:
        parts = [part.partition("=") for part in message.decode().split(",")]
    except UnicodeDecodeError as error:
        raise SaslError("the server's SCRAM message is not text") from error
    return {name: value for name, _, value in parts}
