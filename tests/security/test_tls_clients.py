"""Unmodified clients over TLS, with and without certificates of their own."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from tests.server import MusterServer
from tests.support.certificates import Authority, Issued
from tests.support.waiting import wait_until

TOPIC = "orders"
LISTEN = "127.0.0.1:0,SSL://127.0.0.1:0,MTLS:SSL://127.0.0.1:0"


class Setting:
    """A server with a plain listener, one with TLS and one that asks for certificates."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.issued = self.authority.issue("server")
        self.server = MusterServer(
            folder / "data",
            topics={TOPIC: 4},
            settings={
                "listen.kafka": LISTEN,
                "ssl.keystore.location": self.issued.both,
                "ssl.truststore.location": self.authority.file,
                "listener.name.mtls.ssl.client.auth": "required",
                "listener.name.mtls.ssl.principal.mapping.rules": (
                    "RULE:^CN=([^,]*),OU=tests,.*$/$1/L,DEFAULT"
                ),
                "authorizer.class.name": "StandardAuthorizer",
                "super.users": "User:admin;User:ANONYMOUS",
            },
        )

    def address(self, listener: str) -> str:
        return self.server.endpoints[listener]


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    made = Setting(tmp_path_factory.mktemp("tls"))
    with made.server:
        yield made


def confluent(setting: Setting, listener: str, own: Issued | None = None) -> dict[str, object]:
    config: dict[str, object] = {
        "bootstrap.servers": setting.address(listener),
        "security.protocol": "ssl",
        "ssl.ca.location": str(setting.authority.file),
    }
    if own is not None:
        config |= {"ssl.certificate.location": str(own.chain), "ssl.key.location": str(own.key)}
    return config


def consume(config: dict[str, object], group: str) -> list[str]:
    """Produce a record and read it as a member of a group."""
    producer = Producer(config)
    producer.produce(TOPIC, b"one")
    assert producer.flush(30) == 0
    consumer = Consumer(
        {**config, "group.id": group, "group.protocol": "consumer", "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([TOPIC])
        found: list[str] = []

        def poll() -> bool:
            message = consumer.poll(0.2)
            if message is not None and message.error() is None:
                found.append(message.topic())
            return bool(found)

        wait_until(poll, within_s=60)
        consumer.commit(asynchronous=False)
        return found
    finally:
        consumer.close()


@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_confluent_kafka_produces_and_consumes(setting: Setting, listener: str) -> None:
    own = setting.authority.issue("Admin") if listener == "MTLS" else None
    assert consume(confluent(setting, listener, own), f"g-{listener}") == [TOPIC]


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning")
@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_kafka_python_consumes(setting: Setting, listener: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    config = {
        "bootstrap_servers": setting.address(listener),
        "security_protocol": "SSL",
        "ssl_cafile": str(setting.authority.file),
    }
    if listener == "MTLS":
        own = setting.authority.issue("Admin")
        config |= {"ssl_certfile": str(own.chain), "ssl_keyfile": str(own.key)}
    producer = KafkaProducer(**config)
    producer.send(TOPIC, b"two", partition=0).get(30)
    producer.close()
    consumer = KafkaConsumer(**config, group_id=f"p-{listener}", auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition(TOPIC, 0)])
        wait_until(lambda: bool(consumer.poll(timeout_ms=200)), within_s=60)
        consumer.commit()
    finally:
        consumer.close()


def test_the_certificate_is_the_principal_of_acls(setting: Setting) -> None:
    """``User:admin`` may do everything by super.users, somebody else nothing."""
    stranger = setting.authority.issue("stranger")
    config = confluent(setting, "MTLS", stranger)
    consumer = Consumer({**config, "group.id": "g-stranger", "group.protocol": "consumer"})
    errors: list[str] = []

    def poll() -> bool:
        try:
            message = consumer.poll(0.2)
        except KafkaException as error:
            errors.append(error.args[0].name())
        else:
            if message is not None and message.error() is not None:
                errors.append(message.error().name())
        return any("AUTHORIZATION_FAILED" in each for each in errors)

    try:
        consumer.subscribe([TOPIC])
        wait_until(poll, within_s=60)
    finally:
        consumer.close()


def shake(
    setting: Setting, listener: str, own: Issued | None = None, version: str | None = None
) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(setting.authority.file))
    context.check_hostname = False
    if own is not None:
        context.load_cert_chain(own.both)
    if version is not None:
        context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    host, port = setting.server.address(listener)
    return context.wrap_socket(socket.create_connection((host, port), timeout=30))


API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)


def ask(line: socket.socket) -> bytes:
    line.sendall(API_VERSIONS)
    return line.recv(8)


@pytest.mark.parametrize(("version", "name"), [("TLSv1_2", "TLSv1.2"), ("TLSv1_3", "TLSv1.3")])
@pytest.mark.parametrize("listener", ["SSL", "MTLS"])
def test_both_versions_are_served(setting: Setting, listener: str, version: str, name: str) -> None:
    own = setting.authority.issue("Admin") if listener == "MTLS" else None
    with shake(setting, listener, own, version) as line:
        assert line.version() == name
        assert line.compression() is None
        assert ask(line)[4:] == struct.pack(">i", 7)


def test_the_servers_end_is_told(setting: Setting) -> None:
    """An unknown API closes the connection: close_notify comes before the end of the stream."""
    with shake(setting, "SSL") as line:
        line.sendall(struct.pack(">ihhih", 10, 9_999, 0, 7, -1))
        assert line.recv(1) == b""
        line.settimeout(30)
        # A stream that ends without close_notify would have raised SSLEOFError.


def refused(setting: Setting, reason: str) -> float:
    import httpx

    text = httpx.get(f"http://{setting.server.http}/metrics").text
    name = f'muster_kafka_connections_refused_total{{reason="{reason}"}}'
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))


@pytest.mark.parametrize(
    ("reason", "days_left", "authority"),
    [
        ("tls-no-certificate", None, None),
        ("tls-certificate-expired", -1.0, None),
        ("tls-unknown-ca", 30.0, "others"),
    ],
)
@pytest.mark.parametrize("version", ["TLSv1_2", "TLSv1_3"])
def test_a_bad_certificate_is_refused_and_counted(
    setting: Setting,
    tmp_path: Path,
    reason: str,
    days_left: float | None,
    authority: str | None,
    version: str,
) -> None:
    own = None
    if days_left is not None:
        signer = Authority(tmp_path, authority) if authority else setting.authority
        own = signer.issue("client", days_left=days_left)
    before = refused(setting, reason)

    def shake_and_ask() -> None:
        """With TLS 1.3 the client learns of it when it reads."""
        with shake(setting, "MTLS", own, version) as line:
            if not ask(line):
                raise ConnectionResetError

    with pytest.raises((ssl.SSLError, ConnectionError)):
        shake_and_ask()
    wait_until(lambda: refused(setting, reason) > before, within_s=30)


def test_a_client_that_does_not_trust_the_server_is_logged(
    setting: Setting, tmp_path: Path
) -> None:
    before = refused(setting, "tls-refused-by-client")
    context = ssl.create_default_context(cafile=str(Authority(tmp_path, "others").file))
    context.check_hostname = False
    with (
        socket.create_connection(setting.server.address("SSL"), timeout=30) as line,
        pytest.raises(ssl.SSLCertVerificationError),
    ):
        context.wrap_socket(line)
    wait_until(lambda: refused(setting, "tls-refused-by-client") > before, within_s=30)
    assert "it does not know who has signed the server's certificate" in setting.server.output()


def test_plain_bytes_on_a_tls_port(setting: Setting) -> None:
    with socket.create_connection(setting.server.address("SSL"), timeout=30) as line:
        line.sendall(API_VERSIONS)
        assert line.recv(1) == b""
    wait_until(lambda: "plaintext request on a TLS port" in setting.server.output(), within_s=30)
    with socket.create_connection(setting.server.address("SSL"), timeout=30) as line:
        line.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert line.recv(1) == b""
    wait_until(lambda: "HTTP request on the Kafka port" in setting.server.output(), within_s=30)


def test_tls_on_a_plain_port(setting: Setting) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        shake(setting, "kafka").close()
    wait_until(lambda: "TLS handshake on a plaintext port" in setting.server.output(), within_s=30)


def test_the_expiry_is_a_metric(setting: Setting) -> None:
    import httpx

    text = httpx.get(f"http://{setting.server.http}/metrics").text
    assert 'muster_tls_certificate_not_after_seconds{listener="MTLS"}' in text


def test_librdkafka_lists_topics_over_each_listener(setting: Setting) -> None:
    """Metadata names the listener that the client is connected to."""
    config = confluent(setting, "SSL")
    found = AdminClient(config).list_topics(timeout=30)
    (broker,) = found.brokers.values()
    assert f"{broker.host}:{broker.port}" == setting.address("SSL")
