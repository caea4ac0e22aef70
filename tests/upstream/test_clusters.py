"""Clusters of other releases: one of each, and three brokers of which one goes and comes back."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.kafka.releases import KAFKA_2_8_2, KAFKA_3_9_1, RELEASES, Release, start_cluster
from tests.upstream.cases import ALL, slow

pytestmark = pytest.mark.timeout(240)
SASL = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl.plain.sasl.jaas.config": (
        'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
    ),
    "listener.name.sasl.scram-sha-256.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
}


@pytest.mark.parametrize("release", RELEASES if ALL else [KAFKA_2_8_2], ids=str)
def test_its_own_tool_lists_what_was_made(release: Release) -> None:
    with start_cluster(release) as cluster:
        where = ("--bootstrap-server", cluster.bootstrap)
        made = cluster.run_tool(release.topics, *where, "--create", "--topic", "orders")
        assert made.returncode == 0, made
        listed = cluster.run_tool(release.topics, *where, "--list")
        assert "orders" in listed.stdout.split(), listed
        assert cluster.find_controller() == cluster.find_coordinator("g") == 1


@slow
def test_a_broker_of_three_goes_and_comes_back() -> None:
    with start_cluster(KAFKA_3_9_1, brokers=3) as cluster:
        gone = cluster.find_coordinator("g")
        cluster.kill(gone)
        assert cluster.find_coordinator("g") in cluster.brokers
        cluster.start_broker(gone)
        admin = AdminClient({"bootstrap.servers": cluster.address(gone), "log_level": 0})
        assert set(admin.list_topics(timeout=20).brokers) == {1, 2, 3}


@slow
@pytest.mark.parametrize("release", [KAFKA_2_8_2, KAFKA_3_9_1], ids=str)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_listener_with_users(release: Release, mechanism: str) -> None:
    listeners = {"SASL": "SASL_PLAINTEXT"}
    users = {"alice": "secret"}
    with start_cluster(release, 1, SASL, listeners=listeners, scram_users=users) as cluster:
        admin = AdminClient(
            {
                "bootstrap.servers": cluster.bootstrap_of("SASL"),
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": "alice",
                "sasl.password": "secret",
                "log_level": 0,
            }
        )
        made = admin.create_topics([NewTopic("orders", 3, 1)])["orders"]
        assert made.result(20) is None
