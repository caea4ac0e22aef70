"""Makes the TLS context of a listener from its settings."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from security.tls.cipher_suites import compute_cipher_choice
from security.tls.mapping_rules import MappingRules, RuleFault, parse_mapping_rules
from security.tls.memory_files import open_memory_file
from security.tls.tls_settings import TLS_1_2, TLS_1_3, ClientAuth, TlsFault, TlsSettings

if TYPE_CHECKING:
    from security.tls.key_material import KeyMaterial

_VERSIONS: Final = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}
_VERIFYING: Final = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True)
class TlsContext:
    """What one handshake needs: the keys, and who a certificate is about.

    ``material``: the keys as they were read, for what makes its own context of them.
    ``not_after_s``: when the server's certificate expires, in seconds since 1970.
    """

    context: ssl.SSLContext
    rules: MappingRules
    not_after_s: float
    material: KeyMaterial


class TlsContexts:
    """The context of a listener's next handshakes; those under way keep the one they began with."""

    __slots__ = ("current",)

    def __init__(self, current: TlsContext) -> None:
        self.current = current

    def replace(self, newer: TlsContext) -> None:
        """Use other keys from now on."""
        self.current = newer


def load_tls(settings: TlsSettings) -> TlsContext:
    """Read keys and certificates, and make a context of them. Raises ``TlsFault``."""
    # What reads keys takes long to import, and few servers need it.
    from security.tls.key_material import read_key_material

    material = read_key_material(settings)
    try:
        rules = parse_mapping_rules(settings.principal_mapping_rules)
    except RuleFault as fault:
        raise TlsFault(f"ssl.principal.mapping.rules: {fault}") from None
    context = make_server_context(settings, material)
    return TlsContext(context, rules, material.not_after_s, material)


def make_server_context(
    settings: TlsSettings, material: KeyMaterial | None = None
) -> ssl.SSLContext:
    """A context that serves by these settings. Raises ``TlsFault``.

    ``material``: what the settings name, if it has been read already.
    """
    from security.tls.key_material import read_key_material

    found = material or read_key_material(settings)
    choice = compute_cipher_choice(settings.cipher_suites, settings.enabled_protocols)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = min(_VERSIONS[each] for each in choice.protocols)
    context.maximum_version = max(_VERSIONS[each] for each in choice.protocols)
    context.options |= (
        ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    )
    if choice.names:
        _set_ciphers(context, choice.names)
    try:
        with open_memory_file(found.key.reveal().encode() + found.chain) as path:
            context.load_cert_chain(path)
        if found.trusted is not None:
            context.load_verify_locations(cadata=found.trusted.decode())
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or error.strerror
        raise TlsFault(f"the certificate or its key cannot be used: {reason}") from None
    # Java trusts each certificate of a truststore, also one that another one signed.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_mode = _VERIFYING[settings.client_auth]
    return context


def _set_ciphers(context: ssl.SSLContext, names: tuple[str, ...]) -> None:
    probe = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for name in names:
        try:
            probe.set_ciphers(name)
        except ssl.SSLError:
            raise TlsFault(f"ssl.cipher.suites: {name} is not known to OpenSSL") from None
    context.set_ciphers(":".join(names))
