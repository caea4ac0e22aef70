"""Clients of every library, unmodified, with each mechanism that they have, and with certificates.

`make interop` runs every client with every mechanism in both protocols; elsewhere run the quick
ones. ``SECURED_BY=kafka`` asks a real Kafka in place of Muster.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from tests.interop.classic_clients import (
    ALL,
    ASSIGNORS,
    STRATEGIES,
    Member,
    fetch_committed,
    start,
    wait_for,
    wait_until_shared,
)
from tests.interop.confluent_client import produce
from tests.interop.python.muster_sdk import OFFSET
from tests.interop.secured import (
    BY_KAFKA,
    SecuredServer,
    allow,
    create_topics,
    run_secured,
    run_secured_muster,
)
from tests.interop.security import OAUTHBEARER, PLAIN, SCRAM_256, SCRAM_512, Security
from tests.interop.trust import MECHANISMS, MTLS, ROOT, SASL_SSL, SSL, Trust
from tests.support.waiting import wait_until

CLASSIC, CONSUMER, SDK = "classic", "consumer", "muster"
PARTITIONS: Final = 4
NAMES: Final = {f"orders-{number}" for number in range(PARTITIONS)}
EACH: Final = OFFSET
"""Records of each partition."""
CERTIFICATE: Final = "certificate"
REFUSED_WITHIN_S: Final = 30.0
"""From the start of the program, on a machine that has much to do."""
USERS: Final = ("alice", "mallory", ROOT)
SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 200,
}

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]


@dataclass(frozen=True, slots=True)
class Case:
    """A client, the protocol of its group, and how it shows who it is."""

    client: str
    protocol: str
    mechanism: str

    def __str__(self) -> str:
        return f"{self.client}-{self.protocol}-{self.mechanism}"

    def log_in(self, trust: Trust, user: str = "alice") -> Security:
        if self.mechanism == CERTIFICATE:
            return trust.certify(user)
        return trust.log_in(self.mechanism, user)

    def fail(self, trust: Trust) -> Security:
        if self.mechanism == CERTIFICATE:
            return trust.fail_to_certify("alice")
        return trust.fail_to_log_in(self.mechanism, "alice")

    def start(self, secured: SecuredServer, name: str, security: Security) -> Member:
        wire = secured.at(MTLS if self.mechanism == CERTIFICATE else SASL_SSL)
        return start(
            self.client,
            secured.grpc if self.client == SDK else wire,
            name,
            group=f"team-{self}",
            protocol=self.protocol,
            security=security,
        )


def list_cases() -> list[Case]:
    """All that there is, or the quick ones."""
    if not ALL:
        return [
            Case("java", CONSUMER, SCRAM_512),
            Case("java", CLASSIC, SCRAM_512),
            Case("confluent-kafka", CONSUMER, OAUTHBEARER),
            Case("confluent-kafka", CLASSIC, OAUTHBEARER),
            Case("confluent-kafka", CLASSIC, CERTIFICATE),
            Case("kafka-python", CLASSIC, PLAIN),
        ]
    cases = [
        Case(client, protocol, mechanism)
        for protocol, clients in ((CLASSIC, STRATEGIES), (CONSUMER, ASSIGNORS))
        for client in clients
        for mechanism in (*MECHANISMS, CERTIFICATE)
    ]
    return cases if BY_KAFKA else [*cases, *list_cases_of_the_sdk()]


def list_cases_of_the_sdk() -> list[Case]:
    """A password is that of a SCRAM user, whatever its mechanism is."""
    return [
        Case(SDK, protocol, mechanism)
        for protocol in (CLASSIC, CONSUMER)
        for mechanism in (SCRAM_512, OAUTHBEARER, CERTIFICATE)
    ]


CASES: Final = list_cases()
REFUSALS: Final = (
    [
        case
        for case in CASES
        if (case.protocol == CLASSIC or case.client in ("java", SDK))
        and not (BY_KAFKA and (case.client, case.mechanism) == ("aiokafka", OAUTHBEARER))
    ]
    if ALL
    else [
        Case("java", CONSUMER, PLAIN),
        Case("confluent-kafka", CONSUMER, SCRAM_256),
    ]
)
"""aiokafka 0.14 takes the reason that Kafka gives for a refused token for success, and asks on."""
SAID: Final = {
    "java": "SaslAuthenticationException",
    "confluent-kafka": "_AUTHENTICATION",
    # What comes together with the end of the connection, kafka-python 3.0.12 does not read.
    "kafka-python": "SaslAuthenticationFailedError|socket disconnected",
    "aiokafka": "SaslAuthenticationFailed",
    "franz-go": "SASL_AUTHENTICATION_FAILED|unexpected data in oauth response",
    "sarama": "SASL Authentication failed",
    SDK: "AuthenticationFailed",
}
"""What each client says of a wrong password or token."""
SAID_OF_CERTIFICATES: Final = {
    "java": "SslAuthenticationException",
    "confluent-kafka": "SSL alert number",
    "kafka-python": "socket disconnected|alert",
    "aiokafka": "KafkaConnectionError",
    "franz-go": "remote error: tls",
    "sarama": "remote error: tls",
    SDK: "client's certificate",
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServer]:
    """A server with records, on which alice alone may read them."""
    folder = tmp_path_factory.mktemp("secured")
    with run_secured(folder, Trust(folder), USERS, SETTINGS) as server:
        prepare(server)
        yield server


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServer]:
    """One that asks clients of gRPC for their certificates."""
    folder = tmp_path_factory.mktemp("certified")
    with run_secured_muster(folder, Trust(folder), USERS, SETTINGS, grpc=SSL) as server:
        prepare(server)
        yield server


def prepare(server: SecuredServer) -> None:
    create_topics(server.plain, {"orders": PARTITIONS})
    allow(server.plain, "alice", AclOperation.READ, ResourceType.TOPIC, "orders")
    prefixed = ResourcePatternType.PREFIXED
    allow(server.plain, "alice", AclOperation.READ, ResourceType.GROUP, "team-", prefixed)
    produce(server.admin, range(EACH * PARTITIONS))


@pytest.fixture
def server(request: pytest.FixtureRequest, case: Case) -> SecuredServer:
    """The one on which a client can show who it is."""
    is_certified = case.client == SDK and case.mechanism == CERTIFICATE
    found = request.getfixturevalue("certified" if is_certified else "secured")
    assert isinstance(found, SecuredServer)
    return found


@pytest.fixture
def members() -> Iterator[list[Member]]:
    """Those that a test has started; they end with it."""
    started: list[Member] = []
    yield started
    for member in started:
        member.kill()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_members_share_commit_and_leave(
    server: SecuredServer, members: list[Member], case: Case
) -> None:
    """All of it is alice's right alone: it is she whom the server knows them for."""
    security = case.log_in(server.trust)

    def join(name: str) -> Member:
        members.append(case.start(server, name, security))
        return members[-1]

    def is_committed() -> bool:
        committed = fetch_committed(server.admin, f"team-{case}", "orders", PARTITIONS)
        return committed == [EACH] * PARTITIONS

    one = join("one")
    wait_until_shared([one], NAMES)
    wait_for([one], is_committed, "all is committed")
    two = join("two")
    wait_until_shared([one, two], NAMES)
    one.close()
    wait_until_shared([two], NAMES)
    two.close()
    for member in members:
        assert not member.count("commit-failed", "failed"), member.describe()


@pytest.mark.parametrize("case", REFUSALS, ids=str)
def test_who_is_not_known_is_told_so(
    server: SecuredServer, members: list[Member], case: Case
) -> None:
    member = case.start(server, "wrong", case.fail(server.trust))
    members.append(member)
    said = (SAID_OF_CERTIFICATES if case.mechanism == CERTIFICATE else SAID)[case.client]
    wait_until(lambda: re.search(said, complain(member)), member.describe, REFUSED_WITHIN_S)
    assert not member.held()


def complain(member: Member) -> str:
    """What the client says of errors, in events and in its log."""
    return " ".join([*map(str, member.events), *member.program.log])
