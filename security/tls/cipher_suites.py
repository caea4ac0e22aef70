"""``ssl.cipher.suites``: the names that Java and Kafka use, and those of OpenSSL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from security.tls.tls_settings import TLS_1_2, TLS_1_3, TlsFault

SUITES_OF_1_3: Final = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"}
)
"""OpenSSL serves these three to every client of TLS 1.3; Python cannot choose among them."""

_JAVA: Final = re.compile(r"TLS_(?P<exchange>\w+?)_WITH_(?P<cipher>\w+?)_(?P<hash>SHA\d*)")


@dataclass(frozen=True, slots=True)
class CipherChoice:
    """OpenSSL's names for TLS 1.2 (empty: its default), and which protocols have a suite."""

    names: tuple[str, ...]
    protocols: tuple[str, ...]


def compute_cipher_choice(suites: Iterable[str], protocols: tuple[str, ...]) -> CipherChoice:
    """What the list of suites leaves of the ``protocols``. Raises ``TlsFault``."""
    asked = tuple(suites)
    if not asked:
        return CipherChoice((), protocols)
    newer = SUITES_OF_1_3.intersection(asked)
    older = tuple(compute_openssl_name(each) for each in asked if each not in SUITES_OF_1_3)
    if newer and newer != SUITES_OF_1_3 and TLS_1_3 in protocols:
        missing = ", ".join(sorted(SUITES_OF_1_3 - newer))
        raise TlsFault(
            f"ssl.cipher.suites: of TLSv1.3 all suites are served or none: add {missing}, or take "
            "TLSv1.3 out of ssl.enabled.protocols"
        )
    has_suite = {TLS_1_2: bool(older), TLS_1_3: bool(newer)}
    left = tuple(each for each in protocols if has_suite[each])
    if not left:
        raise TlsFault("ssl.cipher.suites has no suite of a protocol in ssl.enabled.protocols")
    return CipherChoice(older, left)


def compute_openssl_name(suite: str) -> str:
    """OpenSSL's name of a suite of TLS 1.2; a name that is not Java's is left as it is."""
    match = _JAVA.fullmatch(suite)
    if match is None:
        return suite
    exchange = match["exchange"].replace("_", "-")
    cipher, digest = match["cipher"], match["hash"]
    if cipher == "CHACHA20_POLY1305":
        parts = [exchange, "CHACHA20-POLY1305"]
    else:
        # AES_256_GCM is AES256-GCM; CBC, the mode of old, has no name of its own.
        name = re.sub(r"^(AES|CAMELLIA|ARIA)_(\d+)", r"\1\2", cipher).removesuffix("_CBC")
        parts = [exchange, name.replace("_", "-"), digest]
    return "-".join(part for part in parts if part != "RSA")
