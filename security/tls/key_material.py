"""Reads the private key, its certificates and the trusted ones from PEM, and checks that they fit.

Everything is read once, into memory, and checked before anything is used: a file that is being
replaced gives the old material, the new one or a fault, never half of each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from model.secret import Secret
from security.tls.tls_settings import JKS, PKCS12, TlsFault, TlsSettings, describe_conversion

_FILE_BYTES_MAX: Final = 4 * 1024 * 1024
_BLOCK: Final = re.compile(
    r"-----BEGIN ([A-Z0-9 ]{1,40})-----([^-]*)-----END \1-----",
)
_CERTIFICATE: Final = "CERTIFICATE"
_KEYS: Final = ("PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY")
_LINE: Final = 64


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """A private key in PEM, without a password; its chain, leaf first; whom to trust, if anybody.

    ``not_after_s``: when the leaf expires, in seconds since 1970.
    """

    key: Secret
    chain: bytes
    trusted: bytes | None
    not_after_s: float


def read_key_material(settings: TlsSettings) -> KeyMaterial:
    """Read what the settings name. Raises ``TlsFault``."""
    if settings.keystore_location:
        place = f"ssl.keystore.location ({settings.keystore_location})"
        blocks = _find_blocks(_read(place, settings.keystore_location))
        keys = [block for block in blocks if block[0] in _KEYS]
        certificates = [block for block in blocks if block[0] == _CERTIFICATE]
    else:
        assert settings.certificate_chain is not None
        assert settings.keystore_key is not None
        place = "ssl.keystore.certificate.chain"
        certificates = [b for b in _find_blocks(settings.certificate_chain) if b[0] == _CERTIFICATE]
        keys = [b for b in _find_blocks(settings.keystore_key.reveal()) if b[0] in _KEYS]
    if len(keys) != 1:
        many = "no private key" if not keys else "more than one private key"
        raise TlsFault(f"{place} has {many}: it must have one, in PEM (BEGIN PRIVATE KEY)")
    if not certificates:
        raise TlsFault(f"{place} has no certificate in PEM (BEGIN CERTIFICATE)")
    key = _load_key(place, *keys[0], settings.key_password)
    chain = "".join(_wrap(*block) for block in certificates).encode()
    not_after_s = _check_leaf(place, _load_certificates(place, chain)[0], key)
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyMaterial(Secret(plain.decode()), chain, read_trusted(settings), not_after_s)


def _check_leaf(place: str, leaf: x509.Certificate, key: PrivateKeyTypes) -> float:
    """Check that the certificate is that of the key; return when it expires."""
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    try:
        # Read as late as here, whatever is in the certificate.
        public, not_after_s = leaf.public_key(), leaf.not_valid_after_utc.timestamp()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise TlsFault(f"{place} has a certificate that cannot be used: {error}") from None
    if public.public_bytes(*form) != key.public_key().public_bytes(*form):
        raise TlsFault(f"{place}: the first certificate is not that of the private key")
    return not_after_s


def read_trusted(settings: TlsSettings) -> bytes | None:
    """The trusted certificates, if any are named. Raises ``TlsFault``."""
    if settings.truststore_location:
        place = f"ssl.truststore.location ({settings.truststore_location})"
        text = _read(place, settings.truststore_location)
    elif settings.truststore_certificates:
        place, text = "ssl.truststore.certificates", settings.truststore_certificates
    else:
        return None
    blocks = [block for block in _find_blocks(text) if block[0] == _CERTIFICATE]
    if not blocks:
        raise TlsFault(f"{place} has no certificate in PEM (BEGIN CERTIFICATE)")
    trusted = "".join(_wrap(*block) for block in blocks).encode()
    _load_certificates(place, trusted)
    return trusted


def _read(place: str, path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            content = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise TlsFault(f"{place} cannot be read: {error.strerror}") from None
    if len(content) > _FILE_BYTES_MAX:
        raise TlsFault(f"{place} is larger than {_FILE_BYTES_MAX} bytes")
    kind = JKS if content.startswith(b"\xfe\xed\xfe\xed") else PKCS12
    if kind == JKS or content.startswith(b"\x30"):
        raise TlsFault(describe_conversion(kind, path, is_key=place.startswith("ssl.keystore")))
    return content.decode("latin-1")


def _find_blocks(text: str) -> list[tuple[str, str]]:
    """Label and body of each PEM block, in order."""
    return [(match[1], match[2]) for match in _BLOCK.finditer(text)]


def _wrap(label: str, body: str) -> str:
    """The block in lines of its own; a setting may have it all in one line, as in Kafka."""
    if ":" not in body:
        flat = "".join(body.split())
        body = "\n".join(flat[start : start + _LINE] for start in range(0, len(flat), _LINE))
    return f"-----BEGIN {label}-----\n{body.strip()}\n-----END {label}-----\n"


def _load_key(place: str, label: str, body: str, password: Secret | None) -> PrivateKeyTypes:
    is_encrypted = label.startswith("ENCRYPTED") or "ENCRYPTED" in body[:80]
    if is_encrypted and password is None:
        raise TlsFault(f"{place}: the private key is encrypted: set ssl.key.password")
    secret = password.reveal().encode() if is_encrypted and password is not None else None
    try:
        return load_pem_private_key(_wrap(label, body).encode(), secret)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The library's own words may quote what it has read.
        hint = "is ssl.key.password right?" if is_encrypted else "it is damaged"
        raise TlsFault(f"{place}: the private key cannot be read: {hint}") from None


def _load_certificates(place: str, pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise TlsFault(f"{place} has a certificate that cannot be read: {error}") from None
