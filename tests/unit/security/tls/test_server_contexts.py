"""Keys and certificates in PEM: files and inline, what is refused, and which suites are served."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from model.secret import Secret
from security.tls.cipher_suites import SUITES_OF_1_3, compute_openssl_name
from security.tls.key_material import read_key_material
from security.tls.server_contexts import load_tls
from security.tls.tls_settings import ClientAuth, TlsFault, TlsSettings
from tests.support.certificates import Authority, Issued


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def issued(authority: Authority) -> Issued:
    return authority.issue("server")


def encrypt(key: Path, password: str) -> str:
    loaded = load_pem_private_key(key.read_bytes(), None)
    secret = BestAvailableEncryption(password.encode())
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret).decode()


def on_one_line(pem: str) -> str:
    """As in a server.properties of Kafka."""
    return " ".join(pem.split("\n"))


def fault(**settings: object) -> str:
    with pytest.raises(TlsFault) as caught:
        load_tls(TlsSettings(**settings))  # type: ignore[arg-type]
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_key_and_chain_are_in_one_file_in_any_order(issued: Issued, tmp_path: Path) -> None:
    turned = tmp_path / "turned.pem"
    turned.write_text(f"Bag Attributes\n x: y\n{issued.chain.read_text()}{issued.key.read_text()}")
    found = {
        (material.key, material.chain)
        for material in (
            read_key_material(TlsSettings(keystore_location=str(path)))
            for path in (issued.both, turned)
        )
    }
    assert len(found) == 1


def test_keys_may_be_inline_and_encrypted(authority: Authority, issued: Issued) -> None:
    settings = TlsSettings(
        certificate_chain=on_one_line(issued.chain.read_text()),
        keystore_key=Secret(on_one_line(encrypt(issued.key, "hush"))),
        key_password=Secret("hush"),
        truststore_certificates=on_one_line(authority.file.read_text()),
        client_auth=ClientAuth.REQUIRED,
    )
    context = load_tls(settings).context
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert len(context.get_ca_certs()) == 1
    assert settings.files == ()


def test_the_password_of_an_encrypted_key(issued: Issued, tmp_path: Path) -> None:
    file = tmp_path / "encrypted.pem"
    file.write_text(encrypt(issued.key, "hush") + issued.chain.read_text())
    assert fault(keystore_location=str(file)).endswith("is encrypted: set ssl.key.password")
    said = fault(keystore_location=str(file), key_password=Secret("wrong"))
    assert said.endswith("cannot be read: is ssl.key.password right?")
    assert "wrong" not in said


def test_a_password_that_is_not_needed_does_no_harm(issued: Issued) -> None:
    load_tls(TlsSettings(keystore_location=str(issued.both), key_password=Secret("x")))


def test_what_cannot_be_used(authority: Authority, issued: Issued, tmp_path: Path) -> None:
    other = authority.issue("other")

    def write(text: str) -> str:
        path = tmp_path / "given.pem"
        path.write_text(text)
        return str(path)

    key, chain = issued.key.read_text(), issued.chain.read_text()
    assert "has no private key" in fault(keystore_location=write(chain))
    assert "more than one private key" in fault(keystore_location=write(key + key + chain))
    assert "has no certificate" in fault(keystore_location=write(key))
    assert "is not that of the private key" in fault(
        keystore_location=write(key + other.chain.read_text())
    )
    assert "cannot be read: it is damaged" in fault(
        keystore_location=write(key.replace("\n", "\nA", 2) + chain)
    )
    assert "certificate that cannot be read" in fault(
        keystore_location=write(key + chain.replace("\nMII", "\nMAA", 1))
    )
    assert "No such file" in fault(keystore_location=str(tmp_path / "gone"))
    both = str(issued.both)
    assert "ssl.truststore.location" in fault(
        keystore_location=both, truststore_location=write(key)
    )
    assert "certificate that cannot be read" in fault(
        keystore_location=both, truststore_certificates=chain.replace("\nMII", "\nMAA", 1)
    )
    assert "larger than" in fault(keystore_location=write("x" * (5 << 20)))


def test_a_java_keystore_gets_the_command_that_converts_it(issued: Issued, tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    assert f"keytool -importkeystore -srckeystore {store} " in fault(keystore_location=str(store))
    key = load_pem_private_key(issued.key.read_bytes(), None)
    secret = BestAvailableEncryption(b"x")
    store.write_bytes(
        pkcs12.serialize_key_and_certificates(b"k", key, None, None, secret)  # type: ignore[arg-type]
    )
    assert f"openssl pkcs12 -in {store} -nodes -out {store}.pem" in fault(
        keystore_location=str(store)
    )
    assert f"keytool -list -rfc -keystore {store} > {store}.pem" in fault(
        keystore_location=str(issued.both), truststore_location=str(store)
    )


@pytest.mark.parametrize(
    ("java", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256", "ECDHE-ECDSA-AES128-SHA256"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_CBC_SHA", "DHE-RSA-AES256-SHA"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_suites_have_the_names_of_java(java: str, openssl: str) -> None:
    assert compute_openssl_name(java) == openssl
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(openssl)


def test_suites_decide_which_versions_are_served(issued: Issued) -> None:
    older = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"
    both = str(issued.both)

    def served(*suites: str) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
        context = load_tls(TlsSettings(keystore_location=both, cipher_suites=suites)).context
        return context.minimum_version, context.maximum_version

    v2, v3 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    assert served() == (v2, v3)
    assert served(older) == (v2, v2)
    assert served(*SUITES_OF_1_3) == (v3, v3)
    assert served(older, *SUITES_OF_1_3) == (v2, v3)
    assert "of TLSv1.3 all suites are served or none" in fault(
        keystore_location=both, cipher_suites=("TLS_AES_128_GCM_SHA256",)
    )
    assert "has no suite of a protocol" in fault(
        keystore_location=both, cipher_suites=(older,), enabled_protocols=("TLSv1.3",)
    )
    assert "NO-SUCH-SHA is not known to OpenSSL" in fault(
        keystore_location=both, cipher_suites=("TLS_NO_WITH_SUCH_SHA",)
    )


def test_nothing_secret_is_shown(issued: Issued) -> None:
    settings = TlsSettings(
        certificate_chain=issued.chain.read_text(),
        keystore_key=Secret(issued.key.read_text()),
        key_password=Secret("hush"),
    )
    body = issued.key.read_text().split("\n")[1]
    for shown in (repr(settings), repr(read_key_material(settings)), repr(load_tls(settings))):
        assert body not in shown
        assert "hush" not in shown


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """The server's side of a finished handshake. Raises ``ssl.SSLError``."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    for side in (theirs, ours, theirs):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    ours.do_handshake()
    return ours


def test_one_client_may_be_trusted_without_the_authority_that_signed_it(
    authority: Authority, issued: Issued
) -> None:
    """As in Java, where each certificate of a truststore is trusted."""
    trusted, other = authority.issue("trusted"), authority.issue("other")
    server = load_tls(
        TlsSettings(
            keystore_location=str(issued.both),
            truststore_location=str(trusted.chain),
            client_auth=ClientAuth.REQUIRED,
        )
    ).context
    client = ssl.create_default_context(cafile=str(authority.file))
    client.load_cert_chain(trusted.both)
    assert shake_hands(server, client).getpeercert(binary_form=True) == trusted.der
    client.load_cert_chain(other.both)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, client)
