"""Who the clients with certificates are, and how many of these are remembered."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.runtime.audit import NO_AUDIT
from coordinator.service.credentials import authentication
from coordinator.service.credentials.authentication import CertificateAuthentication
from security.identity import NOBODY, Identity


class Call:
    """The context of a call from a client with this certificate."""

    def __init__(self, *certificates: bytes) -> None:
        self._context = {"x509_pem_cert": certificates}

    def auth_context(self) -> dict[str, tuple[bytes, ...]]:
        return self._context


async def test_each_certificate_is_read_once_and_only_so_many_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(authentication, "CERTIFICATES_MAX", 10)
    read: list[bytes] = []

    def compute(pem: bytes) -> Identity:
        read.append(pem)
        return Identity(f"User:{pem.decode()}")

    asked = CertificateAuthentication(compute, NO_AUDIT)

    async def ask(*certificates: bytes) -> Identity:
        call: Any = Call(*certificates)
        return await asked.authenticate(call)

    assert await ask() == NOBODY
    for _ in range(3):
        assert await ask(b"a") == Identity("User:a")
    assert read == [b"a"]
    for number in range(100):
        await ask(str(number).encode())
    assert len(asked._known) == 10
    await ask(b"a")
    assert read[-1] == b"a", "the oldest was forgotten"
