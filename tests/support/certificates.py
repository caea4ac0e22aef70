"""Authorities, keys and certificates for tests, in PEM files.

authority = Authority(tmp_path)
server = authority.issue("server", hosts=("127.0.0.1",))
settings = {"ssl.keystore.location": server.both, "ssl.truststore.location": authority.file}
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

_LIFE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Issued:
    """The files of one certificate: key and chain in one, as the server takes them, and alone."""

    both: Path
    key: Path
    chain: Path
    der: bytes


class Authority:
    """Signs certificates; ``file`` has its own."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._ca = trustme.CA(organization_name=name, key_type=trustme.KeyType.ECDSA)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._ca.cert_pem.bytes())

    def issue(
        self,
        name: str,
        *,
        hosts: tuple[str, ...] = ("127.0.0.1", "localhost"),
        unit: str = "tests",
        days_left: float = 30.0,
        key_type: trustme.KeyType = trustme.KeyType.ECDSA,
        replaces: Path | None = None,
    ) -> Issued:
        """A certificate for ``CN=name,OU=unit``; negative days: expired.

        ``replaces``: the file of key and chain that is replaced at once, as a renewal does it.
        """
        not_after = datetime.now(UTC) + timedelta(days=days_left)
        leaf = self._ca.issue_cert(
            *hosts,
            common_name=name,
            organization_name="Acme, Inc.",
            organization_unit_name=unit,
            not_before=not_after - _LIFE,
            not_after=not_after,
            key_type=key_type,
        )
        # Java reads keys in this form alone.
        key = load_pem_private_key(leaf.private_key_pem.bytes(), None).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
        chain = b"".join(each.bytes() for each in leaf.cert_chain_pems)
        files = [self._folder / f"{name}{end}" for end in (".pem", ".key", ".crt")]
        if replaces is not None:
            files[0] = replaces.with_suffix(".new")
        for file, content in zip(files, (key + chain, key, chain), strict=True):
            file.write_bytes(content)
        if replaces is not None:
            files[0] = files[0].replace(replaces)
        der = x509.load_pem_x509_certificate(chain).public_bytes(Encoding.DER)
        return Issued(files[0], files[1], files[2], der)
