"""What TLS settings lack or contradict, before any file is read."""

from __future__ import annotations

from typing import Final

from security.tls.cipher_suites import compute_cipher_choice
from security.tls.mapping_rules import RuleFault, parse_mapping_rules
from security.tls.tls_settings import (
    JKS,
    PEM,
    PKCS12,
    ClientAuth,
    TlsFault,
    TlsSettings,
    describe_conversion,
)

_KINDS: Final = (PEM, JKS, PKCS12)
_SUFFIXES: Final = {"jks": JKS, "p12": PKCS12, "pfx": PKCS12}


def check_tls_settings(settings: TlsSettings) -> list[str]:
    """What the settings lack or contradict, one line each, without a look at any file."""
    mistakes = []
    inline = bool(settings.certificate_chain or settings.keystore_key)
    if settings.keystore_type not in _KINDS:
        mistakes.append(f"ssl.keystore.type ({settings.keystore_type}) must be PEM")
    elif (kind := _find_kind(settings.keystore_type, settings.keystore_location)) != PEM:
        mistakes.append(describe_conversion(kind, settings.keystore_location, is_key=True))
    elif settings.keystore_location and inline:
        mistakes.append(
            "ssl.keystore.location and an inline key: leave out ssl.keystore.certificate.chain and "
            "ssl.keystore.key, or the file"
        )
    elif inline and not (settings.certificate_chain and settings.keystore_key):
        mistakes.append(
            "ssl.keystore.certificate.chain and ssl.keystore.key belong together: one is missing"
        )
    elif not inline and not settings.keystore_location:
        mistakes.append(
            "no certificate: set ssl.keystore.location to a PEM file with the key and its chain"
        )
    return [*mistakes, *_check_trust(settings), *_check_choices(settings)]


def _check_trust(settings: TlsSettings) -> list[str]:
    if settings.truststore_type not in _KINDS:
        return [f"ssl.truststore.type ({settings.truststore_type}) must be PEM"]
    kind = _find_kind(settings.truststore_type, settings.truststore_location)
    if kind != PEM and settings.truststore_location:
        return [describe_conversion(kind, settings.truststore_location, is_key=False)]
    if settings.truststore_location and settings.truststore_certificates:
        return ["ssl.truststore.location and ssl.truststore.certificates: leave one out"]
    trusts = settings.truststore_location or settings.truststore_certificates
    if settings.client_auth is not ClientAuth.NONE and not trusts:
        return [
            f"ssl.client.auth={settings.client_auth.value} needs the certificates of those whom "
            "clients' certificates are signed by: set ssl.truststore.location to a PEM file"
        ]
    return []


def _check_choices(settings: TlsSettings) -> list[str]:
    mistakes = []
    try:
        compute_cipher_choice(settings.cipher_suites, settings.enabled_protocols)
    except TlsFault as fault:
        mistakes.append(str(fault))
    try:
        parse_mapping_rules(settings.principal_mapping_rules)
    except RuleFault as fault:
        mistakes.append(f"ssl.principal.mapping.rules: {fault}")
    return mistakes


def _find_kind(kind: str, location: str | None) -> str:
    """The kind of a store; Kafka's default is JKS, so a name may tell that nobody has set it."""
    suffix = (location or "").rpartition(".")[2].lower()
    return _SUFFIXES.get(suffix, kind) if kind == PEM else kind
