"""The TLS and SASL with which a tool connects: from options, or a client's properties."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from security.sasl.conversation import OAUTHBEARER

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""Those of a user and a password."""

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_JAAS: Final = re.compile(r"""(username|password)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_STORES: Final = (
    ("ssl.truststore.location", "ssl.truststore.type"),
    ("ssl.keystore.location", "ssl.keystore.type"),
)
_INLINE: Final = (
    ("ssl.truststore.certificates", "ssl.truststore.location"),
    ("ssl.keystore.certificate.chain", "ssl.keystore.location"),
    ("ssl.keystore.key", "ssl.keystore.location"),
)
"""PEM texts within a client's properties, and what is read in their place."""
_TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"


class SecurityError(ValueError):
    """Security that cannot be used as given; the message says what to change."""


@dataclass(frozen=True, slots=True)
class ToolSecurity:
    """TLS if ``tls``, SASL if there is a ``mechanism``; paths are of PEM files.

    ``token_file``: a file with the token of OAUTHBEARER, which only gRPC connections take.
    """

    tls: bool = False
    ca: str = ""
    certificate: str = ""
    key: str = ""
    key_password: str = field(default="", repr=False)
    checks_name: bool = True
    mechanism: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    token_file: str = ""

    def check(self, *, takes_tokens: bool = False) -> None:
        """Raise ``SecurityError`` for what does not fit together."""
        mechanisms = (*MECHANISMS, OAUTHBEARER) if takes_tokens else MECHANISMS
        if self.mechanism and self.mechanism not in mechanisms:
            raise SecurityError(
                f"SASL mechanism {self.mechanism} is not one of {', '.join(mechanisms)}"
            )
        if self.mechanism == OAUTHBEARER and not self.token_file:
            raise SecurityError(
                f"{OAUTHBEARER} needs a token: write it to a file, and set "
                f"{_TOKEN_URL}=file:///PATH"
            )
        if self.mechanism in MECHANISMS and not (self.username and self.password):
            raise SecurityError(f"{self.mechanism} needs a user name and a password")
        if self.username and not self.mechanism:
            raise SecurityError("a user name without a SASL mechanism: add --sasl-mechanism")
        if self.key and not self.certificate:
            raise SecurityError("a TLS key without its certificate: add --tls-cert")
        if not self.tls and (self.ca or self.certificate):
            raise SecurityError("TLS files without TLS: add --tls")
        self.make_context()

    def make_context(self) -> ssl.SSLContext | None:
        """The TLS context of a client; ``None`` without TLS. Raises ``SecurityError``."""
        if not self.tls:
            return None
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
        except OSError as error:
            raise SecurityError(f"cannot use {self.ca} as TLS certificates: {error}") from error
        context.check_hostname = self.checks_name
        try:
            if self.certificate:
                password = self.key_password or _refuse_to_ask
                context.load_cert_chain(self.certificate, self.key or None, password)
        except (OSError, SecurityError) as error:
            raise SecurityError(
                f"cannot use the TLS certificate {self.certificate}: {error}"
            ) from error
        return context


def _refuse_to_ask() -> str:
    raise SecurityError("its key has a password: give ssl.key.password in --command-config")


def read_client_properties(path: Path) -> ToolSecurity:
    """Read a client's ``.properties`` file in Kafka's names. Raises ``SecurityError``."""
    # Commands without such a file need not wait for the import of all settings.
    from security.client.config_providers import ProviderError, read_client_properties_file

    try:
        found = read_client_properties_file(path, os.environ)
    except (OSError, ProviderError) as error:
        raise SecurityError(f"cannot read {path}: {error}") from error
    try:
        return compute_tool_security(found)
    except SecurityError as error:
        raise SecurityError(f"{path}: {error}") from error


def compute_tool_security(given: Mapping[str, str]) -> ToolSecurity:
    """The security of a client with these properties; other properties are ignored, as by Kafka.

    The defaults are Kafka's: no TLS, and GSSAPI, which is refused, for SASL.
    """
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise SecurityError(f"security.protocol {protocol} is not one of {', '.join(_PROTOCOLS)}")
    for location, kind in _STORES:
        if given.get(location) and given.get(kind, "JKS").upper() != "PEM":
            raise SecurityError(
                f"{location} must be a PEM file, with {kind}=PEM: convert it with keytool"
            )
    for name, location in _INLINE:
        if given.get(name):
            raise SecurityError(f"{name} is not read: write it to a file, and set {location}")
    mechanism = username = password = ""
    if protocol.startswith("SASL"):
        mechanism = given.get("sasl.mechanism", "GSSAPI")
        login = {name: _unquote(text) for name, text in _JAAS.findall(
            given.get("sasl.jaas.config", ""))}  # fmt: skip
        username, password = login.get("username", ""), login.get("password", "")
    is_tls = protocol.endswith("SSL")
    return ToolSecurity(
        tls=is_tls,
        ca=given.get("ssl.truststore.location", "") if is_tls else "",
        certificate=given.get("ssl.keystore.location", "") if is_tls else "",
        key_password=given.get("ssl.key.password", ""),
        checks_name=given.get("ssl.endpoint.identification.algorithm", "https") != "",
        mechanism=mechanism,
        username=username,
        password=password,
        token_file=_find_token_file(given) if mechanism == OAUTHBEARER else "",
    )


def _find_token_file(given: Mapping[str, str]) -> str:
    url = given.get(_TOKEN_URL, "")
    if not url.startswith("file:"):
        return ""
    return unquote(urlsplit(url).path)


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])
