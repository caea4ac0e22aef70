"""The load generator: its own Go tests, and each subcommand against a real Kafka."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from bench.peer import (
    KLOAD_SOURCES,
    HeldMembers,
    KloadError,
    build_kload,
    live_heap_bytes,
    run_kload,
    start_kafka,
)
from tests.kafka.broker import KafkaBroker
from tests.kafka.prerequisites import MissingPrerequisite
from tests.kafka.tools import run_consumer_groups
from tests.support.certificates import Authority

pytestmark = pytest.mark.long

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="needs Go: install golang-go")


@needs_go
def test_its_own_tests_pass() -> None:
    done = subprocess.run(
        ["go", "test", "./..."],
        cwd=KLOAD_SOURCES,
        env={**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_go
def test_it_is_built_once_for_the_same_sources(tmp_path: Path) -> None:
    program = build_kload(tmp_path)
    built_at = program.stat().st_mtime_ns
    assert build_kload(tmp_path) == program
    assert program.stat().st_mtime_ns == built_at


def test_without_go_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPrerequisite, match=r"install golang-go$"):
        build_kload(tmp_path)


@needs_go
def test_a_server_that_is_not_there_is_one_line() -> None:
    with pytest.raises(KloadError, match=r"^kload commits: dial tcp .* connection refused$"):
        run_kload("commits", "127.0.0.1:1")


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaBroker]:
    with start_kafka({"offsets.topic.num.partitions": 5}) as broker:
        yield broker


@needs_go
@pytest.mark.kafka
@pytest.mark.parametrize(
    ("subcommand", "options"),
    [
        ("heartbeats", {"members": 20, "groups": 3, "conns": 4, "partitions": 30, "seconds": 0.3}),
        ("commits", {"conns": 4, "groups": 2, "seconds": 0.3}),
        ("commits", {"conns": 4, "groups": 4, "partitions": 50, "version": 10, "seconds": 0.3}),
        ("commits", {"conns": 2, "in_flight": 4, "threads": 2, "warm_up": 0.1, "seconds": 0.3}),
        ("joins", {"members": 20, "conns": 4, "partitions": 30, "rounds": 2}),
    ],
)
def test_rates(kafka: KafkaBroker, subcommand: str, options: dict[str, float]) -> None:
    report = run_kload(subcommand, kafka.bootstrap, pid=kafka.pid, **options)
    assert report["errors"] == {}
    assert report["ops"] >= options["conns"]
    assert report["rate"] == pytest.approx(report["ops"] / report["seconds"], rel=1e-2)
    latency = report["latency_ms"]
    assert 0 < latency["p50"] <= latency["p90"] <= latency["p99"] <= latency["max"]
    assert report["server_cpu_seconds"] > 0
    assert report.get("changed", 0) == 0


@needs_go
@pytest.mark.kafka
def test_a_crowd_settles_converges_and_idles_at_the_interval_it_is_told() -> None:
    settings = {
        "group.consumer.heartbeat.interval.ms": 300,
        "group.consumer.min.heartbeat.interval.ms": 300,
    }
    with start_kafka(settings) as broker:
        moved = run_kload(
            "converge", broker.bootstrap, members=10, partitions=22, rounds=2, warm_up=0, pause=0.3
        )
        assert moved["errors"] == {}
        assert moved["double_owned"] == 0
        # The newcomer has to come back for what others give up first.
        assert len(moved["join_ms"]) == len(moved["leave_ms"]) == 2
        assert all(200 < ms < 3000 for ms in moved["join_ms"])
        assert all(0 < ms < 3000 for ms in moved["leave_ms"])

        idle = run_kload(
            "idle", broker.bootstrap, members=10, warm_up=0.2, seconds=1, pid=broker.pid
        )
        assert idle["errors"] == {}
        assert 0.5 < idle["rate"] / (10 / 0.3) <= 1.1
        groups = run_consumer_groups(broker.bootstrap, "--list", "--state", "Stable").stdout
        assert "kload" not in groups


@needs_go
@pytest.mark.kafka
def test_members_are_held_for_a_look_at_the_heap(kafka: KafkaBroker) -> None:
    with HeldMembers(kafka.bootstrap, members=300, groups=3, topic="held", partitions=1000) as held:
        assert held.report["partitions_per_member"] == 10
        assert 50e6 < live_heap_bytes(kafka) < kafka.rss_bytes()
        described = run_consumer_groups(kafka.bootstrap, "--list", "--state", "Stable").stdout
        assert described.count("kload-") == 3
    described = run_consumer_groups(kafka.bootstrap, "--list", "--state", "Stable").stdout
    assert "kload-" not in described


@needs_go
@pytest.mark.kafka
def test_topics(kafka: KafkaBroker) -> None:
    made = run_kload("topics", kafka.bootstrap, "one=1", "two=2")["topics"]
    assert {name: made[name]["partitions"] for name in made} == {"one": 1, "two": 2}
    assert run_kload("topics", kafka.bootstrap, "one=1")["topics"]["one"] == made["one"]
    with pytest.raises(KloadError, match="topic one has 1 partitions, not 4"):
        run_kload("topics", kafka.bootstrap, "one=4")


_PLAIN_LOGIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_kload="secret";'
)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[KafkaBroker, Authority]]:
    """A broker with TLS, with TLS for those who have a certificate, and with SASL over TLS."""
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    keystore = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("server").both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
    }
    settings = keystore | {
        "offsets.topic.num.partitions": 5,
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.login.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.login.plain.sasl.jaas.config": _PLAIN_LOGIN,
        **{
            f"listener.name.login.scram-sha-{bits}.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            )
            for bits in (256, 512)
        },
    }
    listeners = {"SSL": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_SSL"}
    with start_kafka(settings, listeners=listeners) as broker:
        _create_scram_user(broker.bootstrap)
        yield broker, authority


def _create_scram_user(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        wanted = ScramCredentialInfo(mechanism, 4096)
        made = UserScramCredentialUpsertion("kload", wanted, password=b"secret")
        for altered in admin.alter_user_scram_credentials([made]).values():
            altered.result(10)


@needs_go
@pytest.mark.kafka
@pytest.mark.parametrize(
    ("subcommand", "options"),
    [
        ("heartbeats", {"members": 20, "groups": 3, "conns": 4, "partitions": 30}),
        ("commits", {"conns": 2, "in_flight": 4, "threads": 2}),
        ("connects", {"conns": 4}),
    ],
)
def test_rates_over_tls(
    secured: tuple[KafkaBroker, Authority], subcommand: str, options: dict[str, float]
) -> None:
    broker, authority = secured
    report = run_kload(
        subcommand, broker.address("SSL"), tls_ca=authority.file, seconds=0.5, **options
    )
    assert report["errors"] == {}
    assert report["tls"].startswith("TLS 1.3 TLS_AES_")


@needs_go
@pytest.mark.kafka
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login(secured: tuple[KafkaBroker, Authority], mechanism: str) -> None:
    broker, authority = secured
    options = {"tls_ca": authority.file, "sasl": mechanism, "sasl_user": "kload", "seconds": 0.1}
    address = broker.address("LOGIN")
    report = run_kload("commits", address, conns=1, sasl_password="secret", **options)
    assert report["errors"] == {}
    with pytest.raises(KloadError, match="authentication: error 58"):
        run_kload("commits", address, conns=1, sasl_password="other", **options)


@needs_go
@pytest.mark.kafka
def test_a_certificate_of_its_own(secured: tuple[KafkaBroker, Authority]) -> None:
    broker, authority = secured
    own = authority.issue("kload").both
    address = broker.address("MUTUAL")
    options = {"tls_ca": authority.file, "conns": 1, "seconds": 0.1}
    report = run_kload("connects", address, tls_cert=own, tls_key=own, **options)
    assert report["tls"].startswith("TLS 1.3")
    with pytest.raises(KloadError, match="certificate"):
        run_kload("connects", address, **options)
