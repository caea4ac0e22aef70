"""How the cluster is reached, from the settings; and that a data folder is of one cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.data_folder import DataFolder
from cli.errors import CommandError, ExitCode
from cli.serve.fronting.cluster_access import check_same_cluster, compute_cluster_settings
from cli.serve.fronting.upstream_settings import compute_upstream_settings
from cli.settings import Address, Resolved, resolve
from cli.settings.setting import compute_variable

FRONT = {
    "upstream.bootstrap.servers": "127.0.0.1:9092,[::1]:9093",
    "upstream.relay.ports": "19092-19093",
}
LOGIN = {
    "upstream.security.protocol": "SASL_PLAINTEXT",
    "upstream.sasl.mechanism": "SCRAM-SHA-256",
    "upstream.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="muster" password="secret";',
}


def make_of(values: dict[str, str]) -> Resolved:
    """A password is not taken on the command line."""
    environment = {compute_variable(name): text for name, text in (FRONT | values).items()}
    return resolve(environment=environment)


def test_addresses_and_timeouts() -> None:
    settings = compute_cluster_settings(make_of({"upstream.request.timeout.ms": "2000"}))
    assert settings.bootstrap == (("127.0.0.1", 9092), ("::1", 9093))
    assert (settings.connect_timeout_ms, settings.request_timeout_ms) == (2_000, 2_000)


def test_musters_own_login() -> None:
    resolved = make_of(LOGIN)
    security = compute_cluster_settings(resolved).security
    assert (security.mechanism, security.username) == ("SCRAM-SHA-256", "muster")
    assert security.password.reveal() == "secret"
    found = compute_upstream_settings(resolved, compute_cluster_settings(resolved))
    assert found.acls.principal == "User:muster"
    assert not found.passes_anonymous, "who did not log in is not passed on"


def test_a_login_that_cannot_be_used_is_told() -> None:
    broken = LOGIN | {"upstream.sasl.jaas.config": "nonsense"}
    with pytest.raises(CommandError, match=r"sasl\.jaas\.config") as caught:
        compute_cluster_settings(make_of(broken))
    assert caught.value.exit_code is ExitCode.USAGE
    assert "nonsense" not in str(caught.value)


def test_a_truststore_that_is_not_there_is_told() -> None:
    given = {
        "upstream.security.protocol": "SSL",
        "upstream.ssl.truststore.location": "/nowhere/ca.pem",
    }
    with pytest.raises(CommandError, match=r"/nowhere/ca\.pem"):
        compute_cluster_settings(make_of(given))


def test_the_node_is_where_its_first_listener_is_advertised() -> None:
    for given, own in (
        ({"listen.kafka": "127.0.0.1:9000"}, Address("127.0.0.1", 9000)),
        (
            {"listen.kafka": "127.0.0.1:9000", "advertised.kafka": "muster.example:29092"},
            Address("muster.example", 29092),
        ),
    ):
        resolved = make_of(given)
        found = compute_upstream_settings(resolved, compute_cluster_settings(resolved))
        assert found.own == own
        assert found.ports == range(19092, 19094)
        assert found.passes_anonymous


def test_a_data_folder_is_of_one_cluster(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    check_same_cluster(folder, "one")
    check_same_cluster(folder, "one")
    with pytest.raises(CommandError, match=r"belongs to the cluster one, and .* is two") as caught:
        check_same_cluster(folder, "two")
    assert caught.value.exit_code is ExitCode.PRECONDITION
    folder.prepare()
