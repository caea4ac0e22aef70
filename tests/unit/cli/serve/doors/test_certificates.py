"""Certificates whose files change under a running server, as they are replaced in practice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from structlog.testing import capture_logs

from cli.serve.doors import certificates
from cli.serve.doors.certificates import Certificates
from security.tls.server_contexts import TlsContext, TlsContexts, load_tls
from security.tls.tls_settings import TlsFault, TlsSettings
from tests.support.certificates import Authority
from tests.support.waiting import until

_SECP256R1 = bytes.fromhex("06082a8648ce3d030107")
_UNKNOWN_CURVE = bytes.fromhex("06082a8648ce3d03017f")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "_LOOK_S", 0.01)


@asynccontextmanager
async def watching(keystore: Path) -> AsyncIterator[TlsContexts]:
    kept = Certificates()
    contexts = kept.add("TLS", TlsSettings(keystore_location=str(keystore)))
    kept.start()
    try:
        yield contexts
    finally:
        await kept.stop()


def load_if_permitted(settings: TlsSettings) -> TlsContext:
    """As for a user whom modes concern, which is not so for everybody who runs tests."""
    assert settings.keystore_location is not None
    if not Path(settings.keystore_location).stat().st_mode & 0o400:
        raise TlsFault("ssl.keystore.location cannot be read: Permission denied")
    return load_tls(settings)


async def test_a_file_that_could_not_be_read_is_read_once_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written with mode 0600 by another user, and given to the server's a little later."""
    monkeypatch.setattr(certificates, "load_tls", load_if_permitted)
    authority = Authority(tmp_path)
    keystore = authority.issue("server").both
    with capture_logs() as logs:
        async with watching(keystore) as contexts:
            before = contexts.current
            newer = authority.issue("newer").both
            newer.chmod(0)
            newer.replace(keystore)
            await until(lambda: bool(logs), "it is told")
            assert contexts.current is before
            keystore.chmod(0o600)
            await until(lambda: contexts.current is not before, "it is read")
    assert [each["event"] for each in logs] == ["certificate_refused", "certificate_replaced"]


async def test_a_folder_of_links_is_switched(tmp_path: Path) -> None:
    """As Kubernetes replaces a secret."""
    authority = Authority(tmp_path)
    for name in ("one", "two"):
        folder = tmp_path / f"..{name}"
        folder.mkdir()
        authority.issue(name).both.replace(folder / "tls.pem")
    (tmp_path / "..data").symlink_to("..one")
    keystore = tmp_path / "tls.pem"
    keystore.symlink_to("..data/tls.pem")
    async with watching(keystore) as contexts:
        before = contexts.current
        (tmp_path / "..new").symlink_to("..two")
        (tmp_path / "..new").replace(tmp_path / "..data")
        await until(lambda: contexts.current is not before, "the other folder is read")


async def test_a_certificate_of_an_unknown_kind_is_told_and_does_not_end_the_watch(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    odd = make_odd(issued.key, issued.chain)
    keystore = issued.both
    with capture_logs() as logs:
        async with watching(keystore) as contexts:
            before = contexts.current
            (tmp_path / "odd.pem").write_bytes(odd)
            (tmp_path / "odd.pem").replace(keystore)
            await until(lambda: bool(logs), "it is told")
            assert contexts.current is before
            authority.issue("newer", replaces=keystore)
            await until(lambda: contexts.current is not before, "the next one is read")
    assert logs[0]["event"] == "certificate_refused"
    assert "ssl.keystore.location" in logs[0]["cause"]


async def test_a_certificate_of_an_unknown_kind_is_told_at_start(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue("server")
    issued.both.write_bytes(make_odd(issued.key, issued.chain))
    with pytest.raises(TlsFault, match=r"ssl\.keystore\.location"):
        Certificates().add("TLS", TlsSettings(keystore_location=str(issued.both)))


def make_odd(key: Path, chain: Path) -> bytes:
    """Key and certificate in PEM; the certificate is about a key on a curve that is not known."""
    leaf = x509.load_pem_x509_certificate(chain.read_bytes()).public_bytes(Encoding.DER)
    assert _SECP256R1 in leaf
    spoiled = x509.load_der_x509_certificate(leaf.replace(_SECP256R1, _UNKNOWN_CURVE))
    return key.read_bytes() + spoiled.public_bytes(Encoding.PEM)
