"""The settings of a cluster that Muster stands in front of."""

from __future__ import annotations

import pytest

from cli.settings import Resolved, SettingsError, resolve
from cli.settings.setting_sources import parse_flags
from cli.settings.upstream_rules import parse_relay_ports

SERVERS = "upstream.bootstrap.servers"
PORTS = "upstream.relay.ports"
FRONT = {SERVERS: "127.0.0.1:9092,b:9093", PORTS: "19092-19099"}


def make(values: dict[str, str]) -> Resolved:
    return resolve(parse_flags([f"--{name}={text}" for name, text in values.items()]))


def test_a_cluster_and_ports_are_enough() -> None:
    resolved = make(FRONT)
    assert resolved.values[SERVERS] == ("127.0.0.1:9092", "b:9093")
    assert resolved.values["upstream.offsets.store"] == "upstream"


@pytest.mark.parametrize(
    ("text", "ports"),
    [("19092-19094", range(19092, 19095)), ("9093", range(9093, 9094)), ("1 - 2", range(1, 3))],
)
def test_ports_of_relays(text: str, ports: range) -> None:
    assert parse_relay_ports(text) == ports


@pytest.mark.parametrize("text", ["", "x", "3-2", "0", "1-65536", "-", "1-2-3", "1,2", "²"])
def test_what_is_no_range_of_ports(text: str) -> None:
    with pytest.raises(ValueError, match="is not a range of ports"):
        parse_relay_ports(text)


def test_super_users_count_beside_the_acls_of_the_cluster() -> None:
    assert make({**FRONT, "super.users": "User:a"}).values["super.users"] == "User:a"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({PORTS: "1-2"}, f"{PORTS} has no effect without {SERVERS}"),
        ({"upstream.takeover.groups": "x"}, "upstream.takeover.groups has no effect without"),
        ({SERVERS: "a:1"}, f"needs a port for each broker: set {PORTS}="),
        ({SERVERS: "a", PORTS: "1-2"}, "a is not HOST:PORT"),
        ({SERVERS: "a:0", PORTS: "1-2"}, "a:0 has no port"),
        ({**FRONT, PORTS: "many"}, "upstream.relay.ports: many is not a range of ports"),
        ({**FRONT, "upstream.takeover.groups": "("}, r"\( is no regular expression of RE2"),
        ({**FRONT, "upstream.offsets.store": "both"}, "both is not one of upstream, muster"),
        ({**FRONT, "upstream.standby.nodes": "b"}, "upstream.standby.nodes: b is not HOST:PORT"),
        (
            {**FRONT, "upstream.security.protocol": "SASL_SSL"},
            r"upstream.security.protocol \(SASL_SSL\) needs upstream.sasl.mechanism",
        ),
        (
            {
                **FRONT,
                "upstream.security.protocol": "SASL_PLAINTEXT",
                "upstream.sasl.mechanism": "PLAIN",
            },
            "PLAIN needs a user and a password: set upstream.sasl.jaas.config",
        ),
        (
            {
                **FRONT,
                "upstream.security.protocol": "SASL_SSL",
                "upstream.sasl.mechanism": "OAUTHBEARER",
            },
            "OAUTHBEARER needs a token",
        ),
        (
            {**FRONT, "upstream.ssl.truststore.location": "/ca.pem"},
            r"upstream.ssl.truststore.location has no effect with upstream.security.protocol",
        ),
        (
            {**FRONT, "upstream.sasl.mechanism": "PLAIN"},
            "upstream.sasl.mechanism has no effect with",
        ),
        (
            {**FRONT, "listen.kafka": "0.0.0.0:9092", "allow.unauthenticated": "true"},
            "a listener on 0.0.0.0: clients need an address to connect to",
        ),
        ({**FRONT, "listen.kafka": "127.0.0.1:0"}, "needs a Kafka listener with a port of its own"),
        (
            {**FRONT, "authorizer.class.name": "StandardAuthorizer"},
            "authorizer.class.name has no effect with upstream.bootstrap.servers",
        ),
    ],
)
def test_mistakes_are_told(values: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        make(values)
