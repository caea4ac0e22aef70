"""Several listeners of one server: what each lets in, and which address it tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.server import MusterServer, ServerNotStarted
from tests.support.certificates import Authority


def test_each_listener_tells_its_own_address(tmp_path: Path) -> None:
    """By Kafka's own names, without its port of controllers."""
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    file = tmp_path / "server.properties"
    file.write_text(
        f"""\
process.roles=broker,controller
listeners=PLAINTEXT://:9092
advertised.listeners=CLIENT://kafka.example:9094
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,CLIENT:SSL
ssl.keystore.type=PEM
listener.name.client.ssl.keystore.location={issued.both}
"""
    )
    listeners = "INTERNAL://127.0.0.1:0,CONTROLLER://127.0.0.1:0,CLIENT://127.0.0.1:0"
    server = MusterServer(tmp_path / "data", f"--config={file}", f"--listeners={listeners}")
    with server:
        assert server.kafka != server.endpoints["CLIENT"]
        assert set(server.endpoints) == {"kafka", "CLIENT", "grpc", "http"}
        plain = AdminClient({"bootstrap.servers": server.kafka}).list_topics(timeout=30)
        (broker,) = plain.brokers.values()
        assert f"{broker.host}:{broker.port}" == server.kafka
        config = {
            "bootstrap.servers": server.endpoints["CLIENT"],
            "security.protocol": "ssl",
            "ssl.ca.location": str(authority.file),
        }
        found = AdminClient(config).list_topics(timeout=30)
        (broker,) = found.brokers.values()
        assert f"{broker.host}:{broker.port}" == "kafka.example:9094"


def refuse(folder: Path, *arguments: str) -> str:
    """The last line of a server that does not start."""
    with pytest.raises(ServerNotStarted) as caught:
        MusterServer(folder / "data", *arguments).start()
    assert not (folder / "data").exists()
    return caught.value.output.strip().splitlines()[-1]


def test_sasl_without_a_mechanism_is_refused(tmp_path: Path) -> None:
    issued = Authority(tmp_path).issue("server")
    line = refuse(
        tmp_path,
        "--listen.kafka=127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        f"--ssl.keystore.location={issued.both}",
    )
    assert line == (
        "muster: the listener SASL_SSL uses SASL, and no mechanism is enabled: set "
        "sasl.enabled.mechanisms=SCRAM-SHA-256"
    )


def test_keys_that_cannot_be_read_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    line = refuse(tmp_path, "--listen.kafka=SSL://127.0.0.1:0", "--ssl.keystore.location=gone.pem")
    assert line == (
        "muster: listen.kafka (SSL): ssl.keystore.location (gone.pem) cannot be read: "
        "No such file or directory"
    )
