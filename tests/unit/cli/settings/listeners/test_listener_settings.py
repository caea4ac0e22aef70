"""Listeners: ours and Kafka's form, protocols, advertised addresses, and who may be let in."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.settings import Resolved, SettingsError, resolve
from cli.settings.listeners.listener_rules import compute_listener_plan
from cli.settings.listeners.listener_tls import compute_tls_settings
from cli.settings.setting_sources import parse_flags
from model.secret import Secret
from security.endpoints import Endpoint, SecurityProtocol
from security.loopback import is_loopback
from security.tls.tls_settings import ClientAuth

PLAINTEXT, SSL, SASL_SSL = (
    SecurityProtocol.PLAINTEXT,
    SecurityProtocol.SSL,
    SecurityProtocol.SASL_SSL,
)
KEYS = ("--ssl.keystore.location=k.pem", "--ssl.truststore.location=t.pem")


def resolve_flags(*words: str) -> Resolved:
    """Flags, and variables of the environment: a password is not taken as a flag."""
    flags = [word for word in words if word.startswith("--")]
    variables = dict(word.split("=", 1) for word in words if word not in flags)
    return resolve(parse_flags(flags), variables)


def plan(*flags: str) -> tuple[Endpoint, ...]:
    return compute_listener_plan(resolve_flags(*flags).values).endpoints


def mistakes(*flags: str) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        resolve_flags(*flags)
    return caught.value.lines


def from_file(folder: Path, text: str, *flags: str) -> Resolved:
    file = folder / "server.properties"
    file.write_text(text)
    return resolve(parse_flags(flags), {}, file)


@pytest.mark.parametrize(
    ("listen", "endpoint"),
    [
        ("127.0.0.1:9", Endpoint("PLAINTEXT", PLAINTEXT, "127.0.0.1", 9)),
        ("[::1]:9", Endpoint("PLAINTEXT", PLAINTEXT, "::1", 9)),
        ("PLAINTEXT://localhost:0", Endpoint("PLAINTEXT", PLAINTEXT, "localhost", 0)),
        ("internal:plaintext://[::1]:9", Endpoint("INTERNAL", PLAINTEXT, "::1", 9)),
        ("SSL://127.0.0.1:9", Endpoint("SSL", SSL, "127.0.0.1", 9)),
        ("SASL_SSL://0.0.0.0:9", Endpoint("SASL_SSL", SASL_SSL, "0.0.0.0", 9)),
        ("OUT:SASL_SSL://:9", Endpoint("OUT", SASL_SSL, "", 9)),
    ],
)
def test_a_listener_is_written_with_or_without_name_and_protocol(
    listen: str, endpoint: Endpoint
) -> None:
    assert plan(f"--listen.kafka={listen}", *KEYS) == (endpoint,)


def test_several_listeners_and_their_advertised_addresses() -> None:
    found = plan(
        "--listen.kafka=IN:PLAINTEXT://127.0.0.1:9092,SASL_SSL://0.0.0.0:9093,X:SSL://127.0.0.1:0",
        "--advertised.kafka=sasl_ssl://kafka.example:443, X://[fd00::1]:1",
        *KEYS,
    )
    assert [(each.name, each.advertised_host, each.advertised_port) for each in found] == [
        ("IN", None, None),
        ("SASL_SSL", "kafka.example", 443),
        ("X", "fd00::1", 1),
    ]


def test_the_only_listener_is_advertised_without_its_name() -> None:
    (found,) = plan("--listen.kafka=127.0.0.1:0", "--advertised.kafka=kafka.example:1")
    assert (found.advertised_host, found.advertised_port) == ("kafka.example", 1)


KRAFT = """\
process.roles=broker,controller
listeners=INTERNAL://127.0.0.1:9092,CONTROLLER://:9093,CLIENT://:9094
advertised.listeners=INTERNAL://a:9092,CLIENT://b:9094,CONTROLLER://c:9093
inter.broker.listener.name=INTERNAL
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:SSL,INTERNAL:PLAINTEXT,CLIENT:SSL
ssl.keystore.type=PEM
ssl.keystore.location=k.pem
ssl.client.auth=required
listener.name.client.ssl.truststore.location=t.pem
listener.name.client.ssl.key.password=hush
listener.name.controller.ssl.keystore.location=c.pem
"""


def test_a_server_properties_of_kafka(tmp_path: Path) -> None:
    resolved = from_file(tmp_path, KRAFT)
    found = compute_listener_plan(resolved.values).endpoints
    assert found == (
        Endpoint("INTERNAL", PLAINTEXT, "127.0.0.1", 9092, "a", 9092),
        Endpoint("CLIENT", SSL, "", 9094, "b", 9094),
    )
    assert resolved.warnings == (
        "these Kafka settings have no effect: inter.broker.listener.name, process.roles",
        "the listener CONTROLLER of listeners is left out: a coordinator has no controllers",
        "these settings have no effect, there is no such listener: "
        "listener.name.controller.ssl.keystore.location",
    )
    tls = compute_tls_settings(resolved.values, found[1])
    assert (tls.keystore_location, tls.truststore_location) == ("k.pem", "t.pem")
    assert (tls.client_auth, tls.key_password) == (ClientAuth.REQUIRED, Secret("hush"))


def test_ours_decides_over_kafkas(tmp_path: Path) -> None:
    text = "listeners=SSL://:1,PLAINTEXT://:2\nadvertised.listeners=PLAINTEXT://a:5\n"
    resolved = from_file(tmp_path, text, "--listen.kafka=127.0.0.1:7")
    assert compute_listener_plan(resolved.values).endpoints == (
        Endpoint("PLAINTEXT", PLAINTEXT, "127.0.0.1", 7, "a", 5),
    )


def test_sasl_ssl_asks_for_certificates_by_its_own_setting_alone() -> None:
    flags = ("--listen.kafka=A:SASL_SSL://127.0.0.1:0,B-C:SASL_SSL://127.0.0.1:0", *KEYS)
    values = resolve_flags(
        *flags, "--ssl.client.auth=required", "--listener.name.b-c.ssl.client.auth=requested"
    ).values
    found = [
        compute_tls_settings(values, endpoint).client_auth
        for endpoint in compute_listener_plan(values).endpoints
    ]
    assert found == [ClientAuth.NONE, ClientAuth.REQUESTED]


def test_a_listeners_own_setting_is_parsed_as_the_setting_is() -> None:
    (line,) = mistakes("--listener.name.a.ssl.client.auth=maybe")
    assert line == (
        "listener.name.a.ssl.client.auth (flag --listener.name.a.ssl.client.auth): maybe is not "
        "one of none, requested, required"
    )
    environment = {"MUSTER_LISTENER_NAME_SASL_SSL_SSL_KEY_PASSWORD": "hush"}
    listen = ["--listen.kafka=SASL_SSL://127.0.0.1:0", *KEYS]
    resolved = resolve(parse_flags(listen), environment)
    (endpoint,) = compute_listener_plan(resolved.values).endpoints
    assert compute_tls_settings(resolved.values, endpoint).key_password == Secret("hush")
    assert "hush" not in repr(resolved)


@pytest.mark.parametrize(
    ("flags", "lines"),
    [
        (["--listen.kafka=X://127.0.0.1:1"], ["which protocol does X have?"]),
        (["--listen.kafka=X:TLS://127.0.0.1:1"], ["TLS is not one of PLAINTEXT, SSL, SASL_PLAIN"]),
        (["--listen.kafka=A B://127.0.0.1:1"], ["the name of a listener has letters"]),
        (["--listen.kafka=PLAINTEXT://h"], ["is not HOST:PORT"]),
        (["--listen.kafka=PLAINTEXT://127.0.0.1:70000"], ["a port from 0 to 65535"]),
        (["--listen.kafka=PLAINTEXT://::1:5"], ["write an IPv6 address in brackets"]),
        (["--listen.kafka="], ["must not be empty"]),
        (["--listen.kafka=CONTROLLER://127.0.0.1:1"], ["listen.kafka must not be empty"]),
        (
            ["--listen.kafka=127.0.0.1:1,PLAINTEXT://127.0.0.1:2"],
            ["two listeners are named PLAINTEXT"],
        ),
        (
            ["--listen.kafka=A_B:PLAINTEXT://127.0.0.1:1,A-B:PLAINTEXT://127.0.0.1:2"],
            ["two listeners are named A-B"],
        ),
        (
            ["--listen.kafka=A:PLAINTEXT://127.0.0.1:1,B:PLAINTEXT://127.0.0.1:1"],
            ["A and B have the same port 1"],
        ),
        (
            ["--listen.kafka=A:SASL_SSL://0.0.0.0:1,B:PLAINTEXT://127.0.0.1:1", *KEYS],
            ["A and B have the same port 1"],
        ),
        (
            ["--listen.kafka=A:SSL://127.0.0.1:1", "--listener.security.protocol.map=A:PLAINTEXT"],
            ["listener.security.protocol.map says that A is PLAINTEXT"],
        ),
        (["--listener.security.protocol.map=A"], ["write NAME:PROTOCOL"]),
        (["--listener.security.protocol.map=A:X"], ["X is not one of"]),
        (["--listener.security.protocol.map=A:SSL,a:PLAINTEXT"], ["A has two protocols"]),
        (["--advertised.kafka=X://h:1"], ["advertised.kafka (X://h:1): no listener is named X"]),
        (["--advertised.kafka=h:0"], ["clients cannot connect to port 0"]),
        (["--advertised.kafka=0.0.0.0:1"], ["clients cannot connect to 0.0.0.0"]),
        (
            ["--advertised.kafka=PLAINTEXT://h:1,h:2"],
            ["PLAINTEXT has an address already"],
        ),
        (
            [
                "--listen.kafka=A:PLAINTEXT://127.0.0.1:0,B:PLAINTEXT://127.0.0.1:0",
                "--advertised.kafka=h:1",
            ],
            ["there are several listeners: write NAME://HOST:PORT"],
        ),
        (["--listen.kafka=SSL://127.0.0.1:0"], ["listen.kafka (SSL): no certificate: set ssl.key"]),
        (
            ["--listen.kafka=SSL://127.0.0.1:0", "--ssl.keystore.location=a.jks"],
            ["run `keytool -importkeystore -srckeystore a.jks -destkeystore a.pem.p12"],
        ),
        (
            [
                "--listen.kafka=SSL://127.0.0.1:0",
                "--ssl.keystore.location=my keys",
                "--ssl.keystore.type=PKCS12",
            ],
            ["run `openssl pkcs12 -in 'my keys' -nodes -out 'my keys.pem'`"],
        ),
        (
            ["--listen.kafka=SSL://127.0.0.1:0", KEYS[0], "--ssl.client.auth=required"],
            ["ssl.client.auth=required needs the certificates"],
        ),
        (
            ["--listen.kafka=SSL://127.0.0.1:0", KEYS[0], "--ssl.truststore.location=t.jks"],
            ["run `keytool -list -rfc -keystore t.jks > t.pem`"],
        ),
        (
            ["--listen.kafka=SSL://127.0.0.1:0", KEYS[0], "MUSTER_SSL_KEYSTORE_KEY=x"],
            ["an inline key: leave out"],
        ),
        (
            ["--listen.kafka=SSL://127.0.0.1:0", "MUSTER_SSL_KEYSTORE_KEY=x"],
            ["belong together: one is missing"],
        ),
        (
            [
                "--listen.kafka=SSL://127.0.0.1:0",
                KEYS[0],
                "--ssl.cipher.suites=TLS_AES_256_GCM_SHA384",
                "--ssl.principal.mapping.rules=RULE:(/x/",
            ],
            ["all suites are served or none", "ssl.principal.mapping.rules: '(': missing )"],
        ),
        (
            ["--listen.kafka=127.0.0.1:x,X://127.0.0.1:1,SSL://127.0.0.1:2"],
            ["127.0.0.1:x is not", "which protocol", "no certificate"],
        ),
    ],
)
def test_every_mistake_is_one_line(flags: list[str], lines: list[str]) -> None:
    found = mistakes(*flags)
    assert len(found) == len(lines), found
    for line, part in zip(found, lines, strict=True):
        assert part in line
        assert "\n" not in line


@pytest.mark.parametrize(
    ("flags", "is_refused"),
    [
        (["--listen.kafka=0.0.0.0:1"], True),
        (["--listen.kafka=PLAINTEXT://:1"], True),
        (["--listen.kafka=[::]:1"], True),
        (["--listen.kafka=SSL://10.0.0.1:1"], True),
        (["--listen.kafka=SSL://10.0.0.1:1", "--ssl.client.auth=requested"], True),
        (["--listen.kafka=SSL://10.0.0.1:1", "--ssl.client.auth=required"], False),
        (
            ["--listen.kafka=SSL://10.0.0.1:1", "--listener.name.ssl.ssl.client.auth=required"],
            False,
        ),
        (["--listen.kafka=SASL_SSL://10.0.0.1:1"], False),
        (["--listen.kafka=SASL_PLAINTEXT://10.0.0.1:1"], False),
        (["--listen.kafka=127.0.0.2:1"], False),
        (["--listen.kafka=127.0.0.1:1,X:PLAINTEXT://10.0.0.1:1"], True),
    ],
)
def test_nobody_is_let_in_from_elsewhere_without_authentication(
    flags: list[str], is_refused: bool
) -> None:
    if not is_refused:
        plan(*flags, *KEYS)
        return
    (line,) = mistakes(*flags, *KEYS)
    assert line.endswith("add --allow-unauthenticated")
    plan(*flags, *KEYS, "--allow-unauthenticated")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.255.0.9"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "127.evil.example", "10.0.0.1", "fd00::1"])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)
