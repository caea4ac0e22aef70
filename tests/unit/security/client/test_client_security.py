"""A client's security, from the properties that Kafka's clients take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from security.client.client_security import (
    ClientSecurity,
    ClientSecurityFault,
    compute_client_security,
)
from security.endpoints import SecurityProtocol
from tests.support.certificates import Authority

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def test_without_anything_it_is_plaintext() -> None:
    security = compute_client_security({})
    assert security == ClientSecurity()
    security.check()
    assert security.make_context() is None


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)]
)
def test_user_and_password_of_jaas(mechanism: str, module: str) -> None:
    security = compute_client_security(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{module} required username="muster" password="a\\"b;c";',
        }
    )
    assert (security.username, security.password.reveal()) == ("muster", 'a"b;c')
    assert "a" + '"b' not in repr(security)
    security.check()


def test_a_token_file() -> None:
    security = compute_client_security(
        {
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "file:///run/my%20token",
        }
    )
    assert security.token_file == "/run/my token"
    security.check()


def test_tls_with_a_certificate_of_its_own(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    security = compute_client_security(
        {
            "security.protocol": "SSL",
            "ssl.truststore.location": str(authority.file),
            "ssl.keystore.location": str(authority.issue("muster").both),
            "ssl.endpoint.identification.algorithm": "none",
        }
    )
    security.check()
    context = security.make_context()
    assert context is not None
    assert not context.check_hostname
    assert len(context.get_ca_certs()) == 1


def login(**more: str) -> dict[str, str]:
    return {"security.protocol": "SASL_PLAINTEXT", **{k.replace("_", "."): more[k] for k in more}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"security.protocol": "HTTPS"}, "is not one of PLAINTEXT"),
        (login(), r"mechanism \(none\) is not one of PLAIN"),
        (login(sasl_mechanism="GSSAPI"), "GSSAPI is not one of"),
        (login(sasl_mechanism="PLAIN"), "sasl.jaas.config: it does not begin with"),
        (
            login(sasl_mechanism="PLAIN", sasl_jaas_config=f'{PLAIN} required username="u";'),
            "sasl.jaas.config: it must have username",
        ),
        (login(sasl_mechanism="OAUTHBEARER"), "needs a token"),
        ({"security.protocol": "SSL", "ssl.truststore.location": "/none"}, "cannot be read"),
        ({"security.protocol": "SSL", "ssl.keystore.location": "/none"}, "cannot be read"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(ClientSecurityFault, match=expected) as caught:
        compute_client_security(given).check()
    assert "\n" not in str(caught.value)


def test_a_login_needs_a_user_and_a_password() -> None:
    security = ClientSecurity(SecurityProtocol.SASL_SSL, "PLAIN", "muster")
    with pytest.raises(ClientSecurityFault, match="user name and a password"):
        security.check()
