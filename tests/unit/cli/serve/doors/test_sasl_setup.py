"""SASL of each listener from the settings, and settings with which a server must not start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from cli.errors import CommandError
from cli.serve.doors.sasl import SaslSetup
from cli.settings import SettingsError, resolve
from cli.settings.setting import compute_variable
from gateway.sasl.sasl_listener import SaslListener
from model.access.scram import ScramMechanism
from security.endpoints import Endpoint, SecurityProtocol
from security.sasl.conversation import Challenge, NotAuthenticated
from tests.support.security.scram import make_credential
from tests.support.security.tokens import ISSUER, NOW_S, jwk, jwks, rsa_key, sign
from upstream.cluster.cluster import Cluster

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
ALICE = f'{PLAIN_MODULE} required user_alice="hush";'
BOB = f'{PLAIN_MODULE} required user_bob="hush";'


def setup(**settings: str) -> SaslSetup:
    """Dots are ``__`` in the names here."""
    return SaslSetup(resolve(environment=_compute_environment(settings)))


def _compute_environment(settings: Mapping[str, str]) -> dict[str, str]:
    return {compute_variable(name.replace("__", ".")): text for name, text in settings.items()}


def make(name: str = "SASL_SSL", **settings: str) -> SaslListener:
    endpoint = Endpoint(name, SecurityProtocol.SASL_PLAINTEXT, "127.0.0.1", 0)
    return setup(**settings).make_sasl(endpoint)


def mistake(**settings: str) -> str:
    with pytest.raises(SettingsError) as caught:
        make(**settings)
    [line] = caught.value.lines
    assert "hush" not in line
    assert "\n" not in line
    return line


def test_mechanisms_are_in_the_order_of_the_setting() -> None:
    found = make(
        sasl__enabled__mechanisms="SCRAM-SHA-512,PLAIN,SCRAM-SHA-256", sasl__jaas__config=ALICE
    )
    assert list(found.mechanisms) == ["SCRAM-SHA-512", "PLAIN", "SCRAM-SHA-256"]
    assert [each.name for each in found.mechanisms.values()] == list(found.mechanisms)
    assert (found.max_receive_size, found.timeout_ms, found.failure_delay_ms) == (
        524_288,
        30_000,
        100,
    )
    assert set(found.reauth_ms.values()) == {0}


def test_a_listener_and_a_mechanism_there_have_their_own(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "sasl.enabled.mechanisms=SCRAM-SHA-256\n"
        "connections.max.reauth.ms=1000\n"
        f"sasl.jaas.config={BOB}\n"
        "listener.name.sasl_ssl.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512\n"
        f"listener.name.sasl_ssl.plain.sasl.jaas.config={ALICE}\n"
        "listener.name.sasl_ssl.connections.max.reauth.ms=2000\n"
        "listener.name.sasl_ssl.scram-sha-512.connections.max.reauth.ms=3000\n"
        "listener.name.sasl_ssl.sasl.server.max.receive.size=4000\n"
    )
    made = SaslSetup(resolve(file=file))

    def of(name: str) -> SaslListener:
        return made.make_sasl(Endpoint(name, SecurityProtocol.SASL_SSL, "127.0.0.1", 0))

    found, other = of("SASL_SSL"), of("OTHER")
    assert found.reauth_ms == {"PLAIN": 2_000, "SCRAM-SHA-512": 3_000}
    assert found.max_receive_size == 4_000
    plain = found.mechanisms["PLAIN"].begin("")
    assert plain.answer(b"\0alice\0hush", 0.0)
    with pytest.raises(NotAuthenticated):
        plain.answer(b"\0bob\0hush", 0.0)
    assert other.reauth_ms == {"SCRAM-SHA-256": 1_000}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "sasl.enabled.mechanisms"),
        ({"sasl__enabled__mechanisms": "PLAIN"}, "listener.name.sasl_ssl.plain.sasl.jaas.config"),
        (
            {"sasl__enabled__mechanisms": "PLAIN", "sasl__jaas__config": "hush"},
            "does not begin with",
        ),
        ({"sasl__enabled__mechanisms": "OAUTHBEARER"}, "jwks.endpoint.url"),
        (
            {
                "sasl__enabled__mechanisms": "OAUTHBEARER",
                "sasl__oauthbearer__jwks__endpoint__url": "ftp://x/y",
            },
            "https://HOST/PATH",
        ),
    ],
)
def test_what_is_missing_is_said(settings: dict[str, str], said: str) -> None:
    assert said in mistake(**settings)


@pytest.mark.parametrize("mechanism", ["GSSAPI", "scram-sha-256", "SCRAM-SHA-1", ","])
def test_an_unknown_mechanism_is_refused(mechanism: str) -> None:
    with pytest.raises(SettingsError):
        setup(sasl__enabled__mechanisms=mechanism)


def test_passwords_are_not_shown() -> None:
    resolved = resolve(environment=_compute_environment({"sasl.jaas.config": ALICE}))
    assert "hush" not in repr(resolved)


async def test_users_come_later_and_unknown_ones_have_the_secret_of_that_time() -> None:
    made = setup(sasl__enabled__mechanisms="SCRAM-SHA-256")
    endpoint = Endpoint("SASL", SecurityProtocol.SASL_PLAINTEXT, "127.0.0.1", 0)
    scram = made.make_sasl(endpoint).mechanisms["SCRAM-SHA-256"]
    secrets = [b"first"]
    await made.start(lambda: secrets[-1])

    def ask(user: str) -> bytes:
        step = scram.begin("s").answer(f"n,,n={user},r=c".encode(), 0.0)
        assert isinstance(step, Challenge)
        return step.token

    first, unknown = ask("nobody"), ask("alice")
    secrets.append(b"second")
    assert ask("nobody") != first
    credential = make_credential()
    made.credentials.put("alice", ScramMechanism.SHA_256, credential)
    assert ask("alice") != unknown
    made.stop()


def make_oauth(tmp_path: Path, content: bytes) -> SaslSetup:
    file = tmp_path / "jwks.json"
    file.write_bytes(content)
    return setup(
        sasl__enabled__mechanisms="OAUTHBEARER",
        sasl__oauthbearer__jwks__endpoint__url=f"file:{file}",
        sasl__oauthbearer__expected__issuer=ISSUER,
        sasl__oauthbearer__expected__audience="kafka,other",
    )


ENDPOINT = Endpoint("SASL", SecurityProtocol.SASL_PLAINTEXT, "127.0.0.1", 0)


async def test_tokens_are_checked_by_the_keys_of_the_file(tmp_path: Path) -> None:
    made = make_oauth(tmp_path, jwks(jwk(rsa_key())))
    listener = made.make_sasl(ENDPOINT)
    await made.start(lambda: b"")
    try:
        assert listener.keys is not None
        check = made.make_bearer_verifier("SASL")
        assert check.verify(sign(), NOW_S).principal == "User:alice"
        with pytest.raises(NotAuthenticated):
            check.verify(sign(iss="other"), NOW_S)
    finally:
        made.stop()


@pytest.mark.parametrize("content", [b"", b"{}", b'{"keys": []}'])
async def test_a_file_without_keys_ends_the_start(tmp_path: Path, content: bytes) -> None:
    made = make_oauth(tmp_path, content)
    made.make_sasl(ENDPOINT)
    with pytest.raises(CommandError) as caught:
        await made.start(lambda: b"")
    assert "jwks.json" in caught.value.message


# ------------------------------------------------------------------------- in front of a cluster


def in_front(**settings: str) -> SaslSetup:
    resolved = resolve(environment=_compute_environment(settings))
    return SaslSetup(resolved, cast(Cluster, object()))


def test_in_front_of_a_cluster_nothing_is_verified_here() -> None:
    endpoint = Endpoint("SASL_SSL", SecurityProtocol.SASL_SSL, "127.0.0.1", 0)
    found = in_front().make_sasl(endpoint)
    assert found.logins is not None
    assert not found.mechanisms
    assert set(found.readers) == {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"}


@pytest.mark.parametrize(
    ("enabled", "alone", "at_cluster"),
    [
        ("PLAIN,SCRAM-SHA-512", "SCRAM-SHA-512", "PLAIN"),
        ("SCRAM-SHA-256,PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-256"),
        ("OAUTHBEARER", None, None),
    ],
)
def test_passwords_of_plain_are_checked_only_by_a_cluster(
    enabled: str, alone: str | None, at_cluster: str | None
) -> None:
    settings = {"sasl__enabled__mechanisms": enabled}
    assert setup(**settings).find_password_mechanism("grpc") == alone
    assert in_front(**settings).find_password_mechanism("grpc") == at_cluster
    assert setup(**settings).make_cluster_logins("grpc", "PLAIN") is None
    assert in_front(**settings).make_cluster_logins("grpc", "PLAIN") is not None
