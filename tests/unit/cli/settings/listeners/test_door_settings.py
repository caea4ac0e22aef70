"""The settings of the gRPC and the HTTP listener."""

from __future__ import annotations

import pytest

from cli.settings import Resolved, SettingsError, resolve
from cli.settings.setting import render_value
from cli.settings.setting_sources import parse_flags
from security.endpoints import Endpoint, SecurityProtocol

KEYS = "--ssl.keystore.location=server.pem"
TRUST = "--ssl.truststore.location=ca.pem"


def resolved(*flags: str) -> Resolved:
    return resolve(parse_flags(flags))


def mistakes(*flags: str) -> str:
    with pytest.raises(SettingsError) as caught:
        resolved(*flags)
    return "\n".join(caught.value.lines)


@pytest.mark.parametrize(
    ("text", "protocol", "host", "port"),
    [
        ("127.0.0.1:0", SecurityProtocol.PLAINTEXT, "127.0.0.1", 0),
        ("PLAINTEXT://[::1]:5", SecurityProtocol.PLAINTEXT, "::1", 5),
        ("SSL://localhost:5", SecurityProtocol.SSL, "localhost", 5),
        ("sasl_ssl://0.0.0.0:5", SecurityProtocol.SASL_SSL, "0.0.0.0", 5),
        ("SASL_PLAINTEXT://127.0.0.1:5", SecurityProtocol.SASL_PLAINTEXT, "127.0.0.1", 5),
    ],
)
def test_grpc_takes_each_protocol(
    text: str, protocol: SecurityProtocol, host: str, port: int
) -> None:
    found = resolved(f"--listen.grpc={text}", KEYS).endpoint("listen.grpc")
    assert found == Endpoint("GRPC", protocol, host, port)
    again = resolved(f"--listen.grpc={render_value(found)}", KEYS).endpoint("listen.grpc")
    assert again == found


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--listen.grpc=TLS://127.0.0.1:1"], "TLS is not one of PLAINTEXT, SSL"),
        (["--listen.http=SASL_SSL://127.0.0.1:1"], "SASL_SSL is not one of PLAINTEXT, SSL"),
        (["--listen.grpc="], "listen.grpc must not be empty"),
        (["--listen.grpc=0.0.0.0:1"], "do not authenticate"),
        (["--listen.http=0.0.0.0:1"], "do not authenticate"),
        (["--listen.grpc=SSL://0.0.0.0:1", KEYS], "do not authenticate"),
        (["--listen.http=SSL://0.0.0.0:1", KEYS], "do not authenticate"),
        (["--listen.grpc=SSL://127.0.0.1:1"], "no certificate: set ssl.keystore.location"),
        (["--listen.grpc=SASL_PLAINTEXT://0.0.0.0:1"], "would cross the network in the clear"),
        (
            ["--listen.grpc=SSL://127.0.0.1:1", KEYS, TRUST, "--ssl.client.auth=requested"],
            "gRPC either requires certificates or asks for none",
        ),
        (
            ["--listen.grpc=SSL://127.0.0.1:1", KEYS, "--ssl.enabled.protocols=TLSv1.3"],
            "gRPC always serves both versions of TLS",
        ),
        (
            ["--listener.name.grpc.max.connections=5"],
            "listener.name.grpc.max.connections is for listeners of the Kafka wire: set "
            "grpc.connections.max",
        ),
        (
            ["--listener.name.http.max.connections=5"],
            "listener.name.http.max.connections is for listeners of the Kafka wire: set "
            "http.connections.max",
        ),
        (
            ["--listener.name.grpc.max.connection.creation.rate=5"],
            "listener.name.grpc.max.connection.creation.rate is for listeners of the Kafka wire",
        ),
    ],
)
def test_what_is_refused(flags: list[str], says: str) -> None:
    assert says in mistakes(*flags)


@pytest.mark.parametrize(
    "flags",
    [
        ["--listen.grpc=SASL_SSL://0.0.0.0:1", KEYS],
        ["--listen.grpc=SSL://0.0.0.0:1", KEYS, TRUST, "--ssl.client.auth=required"],
        ["--listen.http=SSL://0.0.0.0:1", KEYS, TRUST, "--ssl.client.auth=required"],
        ["--listen.grpc=0.0.0.0:1", "--allow-unauthenticated"],
        ["--listen.grpc=SASL_PLAINTEXT://0.0.0.0:1", "--allow-unauthenticated"],
        ["--listen.grpc=SSL://127.0.0.1:1", "--listener.name.grpc.ssl.keystore.location=a.pem"],
        [
            "--listen.grpc=SSL://127.0.0.1:1",
            KEYS,
            TRUST,
            "--ssl.client.auth=requested",
            "--listener.name.grpc.ssl.client.auth=required",
        ],
    ],
)
def test_what_is_accepted(flags: list[str]) -> None:
    assert not [line for line in resolved(*flags).warnings if "listener.name" in line]
