"""What a connection to a server needs: whom to trust, and who the client is.

A client's file is read where a query is planned, on the driver. Its tasks carry what came of it, so
executors need no file.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.source.errors import OptionError
from pipeline.source.server.addresses import ServerAddress

if TYPE_CHECKING:
    from security.client.client_security import ClientSecurity

_TOKENS: Final = "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """A server, TLS as PEM if ``is_secure``, and the credentials that go with each call."""

    target: str
    is_secure: bool = False
    trusted: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    chain: bytes | None = None
    metadata: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def find_access(address: ServerAddress) -> ServerAccess:
    """Read the client's file of an address. Raise ``OptionError`` for what cannot be used."""
    if not address.config:
        return ServerAccess(address.target)
    from security.client.client_security import ClientSecurityFault, compute_client_security
    from security.client.config_providers import ProviderError, read_client_properties_file
    from security.sasl.conversation import NotAuthenticated
    from security.tls.tls_settings import TlsFault

    try:
        given = read_client_properties_file(Path(address.config), os.environ)
        security = compute_client_security(given)
        security.check()
        return _compute_access(address.target, security)
    except OSError as error:
        raise OptionError(f"cannot read {address.config}: {error.strerror}") from error
    except (ProviderError, ClientSecurityFault, NotAuthenticated, TlsFault) as error:
        raise OptionError(f"{address.config}: {error}") from error


def _compute_access(target: str, security: ClientSecurity) -> ServerAccess:
    from security.loopback import find_clear_text_fault
    from security.tls.key_material import read_key_material, read_trusted

    is_secure, tls = security.protocol.uses_tls, security.tls
    if security.protocol.uses_sasl and not is_secure and (fault := find_clear_text_fault(target)):
        raise OptionError(fault)
    own = read_key_material(tls) if is_secure and tls.keystore_location else None
    return ServerAccess(
        target,
        is_secure,
        read_trusted(tls) if is_secure else None,
        None if own is None else own.key.reveal().encode(),
        None if own is None else own.chain,
        _compute_metadata(security) if security.protocol.uses_sasl else (),
    )


def _compute_metadata(security: ClientSecurity) -> tuple[tuple[str, str], ...]:
    from security.client.client_login import read_token

    if security.mechanism == _TOKENS:
        token = security.token.reveal() or read_token(security.token_file)
        return (("authorization", f"Bearer {token}"),)
    pair = f"{security.username}:{security.password.reveal()}".encode()
    return (("authorization", f"Basic {base64.b64encode(pair).decode()}"),)
