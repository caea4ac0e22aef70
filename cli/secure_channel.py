"""Opens a gRPC channel with the TLS and the credentials of a Kafka client's properties."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import grpc

from cli.errors import CommandError, ExitCode
from cli.tool_security import (
    SecurityError,
    ToolSecurity,
    read_client_properties,
)
from security.loopback import find_clear_text_fault
from security.sasl.conversation import OAUTHBEARER

CHANNEL_OPTIONS: Final = (
    # An HTTP proxy cannot reach a server that listens on loopback.
    ("grpc.enable_http_proxy", 0),
    # gRPC retries without limit, even within one call (see muster/connection/client.py).
    ("grpc.enable_retries", 0),
    # A command that goes on while the server restarts soon sees that it is back.
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # A group of 10,000 members, or 100,000 partitions, is described in one message of more than
    # gRPC's 4 MiB.
    ("grpc.max_receive_message_length", -1),
)

Metadata: TypeAlias = tuple[tuple[str, str], ...]


def read_security(server: str, given: Path | ToolSecurity | None) -> ToolSecurity:
    """The security of a client's file. Raises ``CommandError`` for what cannot be used."""
    try:
        security = read_client_properties(given) if isinstance(given, Path) else given
        security = security or ToolSecurity()
        security.check(takes_tokens=True)
        if not security.checks_name and security.tls:
            raise SecurityError(
                "ssl.endpoint.identification.algorithm cannot be empty: gRPC always checks the "
                "name in the server's certificate"
            )
        if security.mechanism and not security.tls and (fault := find_clear_text_fault(server)):
            raise SecurityError(fault)
    except SecurityError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error
    return security


@contextmanager
def open_channel(server: str, security: ToolSecurity) -> Iterator[grpc.Channel]:
    """A channel for generated stubs. Raises ``CommandError`` for files that cannot be read."""
    try:
        metadata = compute_metadata(security)
        credentials = compute_channel_credentials(security)
    except OSError as error:
        raise CommandError(f"cannot read {error.filename}: {error.strerror}") from error
    except ValueError as error:
        raise CommandError(str(error), ExitCode.USAGE) from error
    if credentials is None:
        channel = grpc.insecure_channel(server, options=CHANNEL_OPTIONS)
    else:
        channel = grpc.secure_channel(server, credentials, options=CHANNEL_OPTIONS)
    with channel:
        opened: Any = _AuthorizedChannel(channel, metadata) if metadata else channel
        yield opened


def compute_metadata(security: ToolSecurity) -> Metadata:
    """The credentials, as calls carry them. Raises ``OSError``, ``SecurityError``."""
    if not security.mechanism:
        return ()
    if security.mechanism == OAUTHBEARER:
        return (("authorization", f"Bearer {_read_token(Path(security.token_file))}"),)
    if ":" in security.username:
        raise SecurityError(
            f"the user {security.username!r} has a colon: over gRPC only others can log in"
        )
    pair = f"{security.username}:{security.password}".encode()
    return (("authorization", f"Basic {base64.b64encode(pair).decode()}"),)


def _read_token(path: Path) -> str:
    token = path.read_text(encoding="utf-8", errors="replace").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise SecurityError(f"{path} has no token")
    return token


def compute_channel_credentials(security: ToolSecurity) -> grpc.ChannelCredentials | None:
    """TLS as gRPC takes it; ``None`` without. Raises ``OSError``, ``ValueError``."""
    if not security.tls:
        return None
    ca = Path(security.ca).read_bytes() if security.ca else None
    if not security.certificate:
        return grpc.ssl_channel_credentials(ca)
    chain = Path(security.certificate).read_bytes()
    key = Path(security.key or security.certificate).read_bytes()
    if security.key_password and b"ENCRYPTED" in key:
        key = _decrypt(key, security.key_password)
    return grpc.ssl_channel_credentials(ca, key, chain)


def _decrypt(key: bytes, password: str) -> bytes:
    """The key without its password: gRPC takes no other."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    found = load_pem_private_key(key, password.encode())
    return found.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class _AuthorizedChannel:
    """Its calls with one request carry the credentials."""

    def __init__(self, channel: grpc.Channel, metadata: Metadata) -> None:
        self._channel = channel
        self._metadata = metadata

    def unary_unary(self, *method: Any, **codecs: Any) -> Any:
        """A call with one answer."""
        return self._authorize(self._channel.unary_unary(*method, **codecs))

    def unary_stream(self, *method: Any, **codecs: Any) -> Any:
        """A call with many answers."""
        return self._authorize(self._channel.unary_stream(*method, **codecs))

    def stream_stream(self, *method: Any, **codecs: Any) -> Any:
        """No command opens a session."""
        return self._channel.stream_stream(*method, **codecs)

    def _authorize(self, start: Any) -> Any:
        def call(request: Any, **options: Any) -> Any:
            return start(request, metadata=self._metadata, **options)

        return call
