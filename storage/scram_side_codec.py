"""Codec of the side records of SCRAM credentials, and of the secret of fake salts.

``storage.side_codec`` has their kinds. The name of a credential is the number that Kafka's protocol
has for its mechanism, then the user.
"""

from __future__ import annotations

from typing import Final, NoReturn

from model.access.scram import FAKE_SALT_SECRET_BYTES, MECHANISM_CODES, MECHANISMS, ScramCredential
from model.log.side_records import FakeSaltSecretValue, ScramCredentialKey
from storage import side_pb2
from storage.codec.errors import CodecError
from storage.log_store import FormatTooNew

VERSION: Final = 1
"""The version of these records. Unlike a field that is added, a newer one must not be ignored."""


def encode_scram_name(key: ScramCredentialKey) -> bytes:
    """The name of a credential."""
    return bytes((MECHANISM_CODES[key.mechanism],)) + key.user.encode()


def decode_scram_key(name: bytes) -> ScramCredentialKey:
    """The key of this name; raises ``CodecError``, and ``FormatTooNew`` for other mechanisms."""
    mechanism = MECHANISMS.get(name[0])
    if mechanism is None:
        _raise_too_new(f"a mechanism with number {name[0]}")
    user = name[1:].decode()
    if not user:
        raise CodecError("a credential without a user")
    return ScramCredentialKey(user, mechanism)


def compute_scram_message(value: ScramCredential) -> side_pb2.ScramCredential:
    """The message of a credential."""
    return side_pb2.ScramCredential(
        version=VERSION,
        salt=value.salt,
        iterations=value.iterations,
        stored_key=value.stored_key,
        server_key=value.server_key,
    )


def decode_scram_credential(data: bytes) -> ScramCredential:
    """A credential; raises ``CodecError`` and ``FormatTooNew``. No error has a part of it."""
    message = side_pb2.ScramCredential.FromString(data)
    _check_version(message.version)
    return ScramCredential(message.salt, message.iterations, message.stored_key, message.server_key)


def compute_secret_message(value: FakeSaltSecretValue) -> side_pb2.FakeSaltSecret:
    """The message of the secret."""
    return side_pb2.FakeSaltSecret(version=VERSION, secret=value.secret)


def decode_secret(data: bytes) -> FakeSaltSecretValue:
    """The secret; errors are as of ``decode_scram_credential``."""
    message = side_pb2.FakeSaltSecret.FromString(data)
    _check_version(message.version)
    if len(message.secret) != FAKE_SALT_SECRET_BYTES:
        raise CodecError(f"a secret of {len(message.secret)} bytes")
    return FakeSaltSecretValue(message.secret)


def _check_version(version: int) -> None:
    if version > VERSION:
        _raise_too_new(f"version {version}")
    if version < 1:
        raise CodecError(f"SCRAM credentials of version {version}")


def _raise_too_new(found: str) -> NoReturn:
    raise FormatTooNew(
        f"the store has SCRAM credentials of {found}, this version reads up to {VERSION}: use a "
        "newer version"
    )
