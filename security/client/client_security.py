"""What a client's security settings say, in Kafka's words, and the TLS context made of them."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote, urlsplit

from model.secret import Secret
from security.client.client_login import (
    MECHANISMS,
    TAKE_PASSWORD,
    ClientLogin,
    make_login,
    read_token,
)
from security.endpoints import SecurityProtocol
from security.sasl.conversation import OAUTHBEARER
from security.sasl.jaas import parse_login
from security.tls.memory_files import open_memory_file
from security.tls.tls_settings import TlsFault, TlsSettings

_NO_SECRET: Final = Secret("")


class ClientSecurityFault(Exception):
    """Security that cannot be used as given; one line that says what to change."""


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """How to speak to the brokers.

    ``tls``: whom to trust (without a truststore, whom the system trusts), and the client's own
    certificate if it has one. ``token_file`` is read anew for each login.
    """

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    mechanism: str = ""
    username: str = ""
    password: Secret = _NO_SECRET
    token: Secret = _NO_SECRET
    """A token that does not change, for OAUTHBEARER."""
    token_file: str = ""
    tls: TlsSettings = TlsSettings()  # noqa: RUF009 - frozen
    checks_host_name: bool = True

    def check(self) -> None:
        """Raise ``ClientSecurityFault`` for what does not fit together or cannot be read."""
        if self.protocol.uses_sasl:
            self._check_login()
        self.make_context()

    def _check_login(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ClientSecurityFault(
                f"SASL mechanism {self.mechanism or '(none)'} is not one of {', '.join(MECHANISMS)}"
            )
        if self.mechanism in TAKE_PASSWORD and not (self.username and self.password.reveal()):
            raise ClientSecurityFault(f"{self.mechanism} needs a user name and a password")
        if self.mechanism == OAUTHBEARER and not (self.token.reveal() or self.token_file):
            raise ClientSecurityFault(f"{OAUTHBEARER} needs a token, or a file that has one")

    def make_login(self) -> ClientLogin:
        """A new attempt to log in. Raises ``NotAuthenticated``."""
        return make_login(
            self.mechanism,
            self.username,
            self.password.reveal(),
            lambda: self.token.reveal() or read_token(self.token_file),
        )

    def make_context(self) -> ssl.SSLContext | None:
        """The TLS context; ``None`` without TLS. Raises ``ClientSecurityFault``."""
        return self._make_context(self.tls)

    def make_context_for_others(self) -> ssl.SSLContext | None:
        """The same for connections that are used in the names of others.

        Where a certificate alone says who somebody is, these must not show Muster's own. A login
        says it otherwise, whatever certificate the brokers ask for.
        """
        if self.protocol.uses_sasl:
            return self.make_context()
        return self._make_context(replace(self.tls, keystore_location=None, keystore_key=None))

    def _make_context(self, tls: TlsSettings) -> ssl.SSLContext | None:
        if not self.protocol.uses_tls:
            return None
        try:
            return _make_context(tls, self.checks_host_name)
        except TlsFault as fault:
            raise ClientSecurityFault(str(fault)) from None
        except (ssl.SSLError, OSError) as error:
            reason = getattr(error, "reason", None) or error.strerror
            raise ClientSecurityFault(f"the TLS files cannot be used: {reason}") from None


def compute_client_security(given: Mapping[str, str]) -> ClientSecurity:
    """From a Kafka client's properties; what is not about security is ignored.

    Raises ``ClientSecurityFault``.
    """
    name = given.get("security.protocol", "PLAINTEXT").upper()
    try:
        protocol = SecurityProtocol(name)
    except ValueError:
        names = ", ".join(each.value for each in SecurityProtocol)
        raise ClientSecurityFault(f"security.protocol {name} is not one of {names}") from None
    username, password = "", _NO_SECRET
    mechanism = given.get("sasl.mechanism", "") if protocol.uses_sasl else ""
    if mechanism in TAKE_PASSWORD:
        try:
            username, password = parse_login(given.get("sasl.jaas.config", ""))
        except ValueError as error:
            raise ClientSecurityFault(f"sasl.jaas.config: {error}") from None
    key_password = given.get("ssl.key.password")
    return ClientSecurity(
        protocol=protocol,
        mechanism=mechanism,
        username=username,
        password=password,
        token_file=_find_token_file(given),
        tls=TlsSettings(
            keystore_location=given.get("ssl.keystore.location"),
            key_password=Secret(key_password) if key_password else None,
            truststore_location=given.get("ssl.truststore.location"),
        ),
        checks_host_name=given.get("ssl.endpoint.identification.algorithm", "https") == "https",
    )


def _find_token_file(given: Mapping[str, str]) -> str:
    url = given.get("sasl.oauthbearer.token.endpoint.url", "")
    return unquote(urlsplit(url).path) if url.startswith("file:") else ""


def _make_context(settings: TlsSettings, checks_host_name: bool) -> ssl.SSLContext:
    # What reads keys takes long to import.
    from security.tls.key_material import read_key_material, read_trusted

    trusted = read_trusted(settings)
    context = ssl.create_default_context(cadata=trusted.decode() if trusted else None)
    context.check_hostname = checks_host_name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Java trusts each certificate of a truststore, also one that another one signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if settings.keystore_location or settings.keystore_key is not None:
        found = read_key_material(settings)
        with open_memory_file(found.key.reveal().encode() + found.chain) as path:
            context.load_cert_chain(path)
    return context
