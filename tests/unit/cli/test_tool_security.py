"""A client's properties in Kafka's names."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.errors import ExitCode
from cli.main import app
from cli.tool_security import (
    SecurityError,
    ToolSecurity,
    compute_tool_security,
    read_client_properties,
)


def test_a_file_of_kafka_clients(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '  username="alice" password="it\'s \\\\"secret\\\\"";\n'
        "ssl.truststore.type=PEM\n"
        "ssl.truststore.location=/etc/ca.pem\n"
        "ssl.endpoint.identification.algorithm=\n"
        "client.id=ignored\n"
    )
    assert read_client_properties(file) == ToolSecurity(
        tls=True,
        ca="/etc/ca.pem",
        checks_name=False,
        mechanism="SCRAM-SHA-512",
        username="alice",
        password='it\'s "secret"',
    )


def test_the_default_is_no_security() -> None:
    assert compute_tool_security({"ssl.truststore.location": ""}) == ToolSecurity()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"security.protocol": "TLS"}, "is not one of PLAINTEXT"),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "ca.jks"},
            "must be a PEM file, with ssl.truststore.type=PEM",
        ),
        ({"security.protocol": "SASL_PLAINTEXT"}, "SASL mechanism GSSAPI is not one of"),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            "PLAIN needs a user name and a password",
        ),
        (
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": "/nowhere.pem",
            },
            "cannot use /nowhere.pem",
        ),
    ],
)
def test_what_cannot_be_used_says_what_to_change(given: dict[str, str], says: str) -> None:
    with pytest.raises(SecurityError, match=says):
        compute_tool_security(given).check()


def test_a_password_may_be_with_a_config_provider(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text('jaas=x required username="alice" password="planted";\n')
    file = tmp_path / "client.properties"
    text = (
        "config.providers=file\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        f"sasl.jaas.config=${{file:{secrets}:jaas}}\n"
    )
    file.write_text(text)
    security = read_client_properties(file)
    assert (security.username, security.password) == ("alice", "planted")
    assert "planted" not in repr(security)
    file.write_text(text.replace(":jaas}", ":none}"))
    with pytest.raises(SecurityError, match="has no key none") as caught:
        read_client_properties(file)
    assert "planted" not in str(caught.value)


def test_a_password_is_not_taken_on_the_command_line() -> None:
    words = ["load", "--bootstrap-server", "127.0.0.1:1", "--sasl-password", "planted"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == ExitCode.USAGE
    assert "set MUSTER_SASL_PASSWORD" in " ".join(done.output.split())
    assert "planted" not in done.output
