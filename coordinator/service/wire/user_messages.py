"""Users and SCRAM credentials, as ``muster.v1`` messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator.service.wire.error_statuses import InvalidField
from model.access.scram import ScramCredential, ScramMechanism
from muster.v1 import user_pb2
from security.scram_keys import compute_key_size


def decode_credentials(
    messages: Sequence[user_pb2.ScramCredential],
) -> tuple[tuple[ScramMechanism, ScramCredential], ...]:
    """Decode the credentials of one user; raises ``InvalidField``, without any part of them."""
    if not 1 <= len(messages) <= len(ScramMechanism):
        raise InvalidField("credentials", "give one credential for each mechanism")
    return tuple(
        _decode_credential(message, f"credentials[{number}]")
        for number, message in enumerate(messages)
    )


def _decode_credential(
    message: user_pb2.ScramCredential, path: str
) -> tuple[ScramMechanism, ScramCredential]:
    mechanism = decode_mechanism(message.mechanism, f"{path}.mechanism")
    size = compute_key_size(mechanism)
    for name in ("stored_key", "server_key"):
        if len(getattr(message, name)) != size:
            raise InvalidField(f"{path}.{name}", f"{name} must have {size} bytes")
    if not message.salt:
        raise InvalidField(f"{path}.salt", "salt must not be empty")
    return mechanism, ScramCredential(
        message.salt, message.iterations, message.stored_key, message.server_key
    )


def decode_mechanism(text: str, path: str) -> ScramMechanism:
    """Decode the name of a mechanism; raises ``InvalidField``."""
    try:
        return ScramMechanism(text)
    except ValueError:
        names = ", ".join(each.value for each in ScramMechanism)
        raise InvalidField(path, f"{text[:40]!r} is none of {names}") from None


def encode_user(name: str, credentials: Mapping[ScramMechanism, ScramCredential]) -> user_pb2.User:
    """What may be shown of a user."""
    return user_pb2.User(
        name=name,
        credentials=[
            user_pb2.ScramCredentialInfo(
                mechanism=mechanism.value, iterations=credentials[mechanism].iterations
            )
            for mechanism in ScramMechanism
            if mechanism in credentials
        ],
    )
