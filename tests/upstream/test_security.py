"""Users, rights and certificates: what the cluster refuses is refused here, by the same error.

A group is in one of three places: in a cluster that is asked directly, in the cluster behind a
relay, or at Muster's node.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.interop.classic_clients import Member as Started
from tests.interop.classic_clients import start
from tests.interop.confluent_client import Address
from tests.interop.secured import SecuredServer, allow, run_secured_kafka
from tests.interop.security import OAUTHBEARER, SCRAM_512, Security
from tests.interop.trust import (
    MECHANISMS,
    MTLS,
    ROOT,
    SASL_PLAINTEXT,
    SASL_SSL,
    SSL,
    Trust,
)
from tests.support.waiting import wait_until
from tests.upstream.cases import slow
from tests.upstream.scene import WITHIN_S
from tests.upstream.secured import (
    ALICE,
    BOB,
    BROKER,
    DONE,
    JOINED,
    PREFIX,
    USERS,
    Fronted,
    Member,
    hear,
    make_front,
    prepare,
)

THERE, HERE, DIRECT = f"{PREFIX}there", f"{PREFIX}here", f"{PREFIX}direct"
LEAVING: Final = ("leaving-there", "leaving-here")
ASSIGNED: Final = "assigned"
HOLDS_WITHIN_S: Final = 6.0

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServer]:
    trust = Trust(tmp_path_factory.mktemp("trust"))
    with run_secured_kafka(trust, USERS, BROKER) as running:
        prepare(running)
        yield running


@pytest.fixture(scope="module")
def fronted(cluster: SecuredServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronted]:
    """Clients encrypt to Muster, which does not to the brokers."""
    folder = tmp_path_factory.mktemp("sasl")
    with make_front(folder / "muster", cluster, SASL_SSL, SASL_PLAINTEXT) as muster:
        running = Fronted(cluster, muster, cluster.trust.log_in(SCRAM_512, ROOT), folder)
        running.take(HERE)
        yield running


def hear_everywhere(fronted: Fronted, security: Security) -> list[str]:
    """What a member hears of a group in each of the three places."""
    direct, kafka = fronted.cluster.at(SASL_SSL).kafka, fronted.muster.kafka
    return [
        hear(direct, security, DIRECT),
        hear(kafka, security, THERE),
        hear(kafka, security, HERE),
    ]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_who_may_read_a_group_and_who_may_not(fronted: Fronted, mechanism: str) -> None:
    trust = fronted.cluster.trust
    assert hear_everywhere(fronted, trust.log_in(mechanism, ALICE)) == [JOINED] * 3
    heard = hear_everywhere(fronted, trust.log_in(mechanism, BOB))
    names = [each.partition(":")[0] for each in heard]
    assert names == ["GROUP_AUTHORIZATION_FAILED"] * 3, heard


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_told_in_the_clusters_words(fronted: Fronted, mechanism: str) -> None:
    wrong = fronted.cluster.trust.fail_to_log_in(mechanism, ALICE)
    direct = hear(fronted.cluster.at(SASL_SSL).kafka, wrong, DIRECT)
    assert direct.startswith("_AUTHENTICATION"), direct
    assert hear(fronted.muster.kafka, wrong, HERE) == direct


def test_a_right_that_is_taken_away_is_gone(fronted: Fronted) -> None:
    """A member's commits are refused."""
    cluster = fronted.cluster
    for group in LEAVING:
        allow(cluster.plain, ALICE, AclOperation.READ, ResourceType.GROUP, group)
    fronted.take(LEAVING[1])
    alice = cluster.trust.log_in(SCRAM_512, ALICE)
    for group in LEAVING:
        # Muster reads the ACLs every few seconds.
        wait_until(partial(is_let_in, fronted, alice, group))
        with Member(fronted.muster.kafka, alice, group) as member:
            member.listen(partial(bool, member.heard))
            assert member.commit() == DONE
            forbid(cluster, ALICE, group)
            wait_until(partial(is_refused, member), within_s=HOLDS_WITHIN_S)


def is_let_in(fronted: Fronted, security: Security, group: str) -> bool:
    return hear(fronted.muster.kafka, security, group) == JOINED


def has_said(member: Started, word: str) -> bool:
    return word in member.describe()


def is_refused(member: Member) -> bool:
    return member.commit() == "GROUP_AUTHORIZATION_FAILED"


def forbid(cluster: SecuredServer, user: str, group: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.plain})
    row = AclBindingFilter(
        ResourceType.GROUP,
        group,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    (done,) = admin.delete_acls([row]).values()
    assert len(done.result(WITHIN_S)) == 1


@pytest.mark.parametrize("mechanism", [SCRAM_512, OAUTHBEARER])
def test_grpc_takes_the_clusters_users(fronted: Fronted, mechanism: str) -> None:
    trust, grpc = fronted.cluster.trust, Address(fronted.muster.grpc)
    cases = {
        ASSIGNED: trust.log_in(mechanism, ALICE),
        "GROUP_AUTHORIZATION_FAILED": trust.log_in(mechanism, BOB),
        "AuthenticationFailed": trust.fail_to_log_in(mechanism, ALICE),
    }
    for said, security in cases.items():
        member = start("muster", grpc, "one", group=HERE, security=security)
        try:
            wait_until(partial(has_said, member, said), member.describe)
            if said == ASSIGNED:
                # It leaves: the next would wait for one that is killed.
                member.close()
        finally:
            member.kill()


def test_certificates_open_musters_doors_and_not_the_clusters(
    cluster: SecuredServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Muster knows who holds one; to the cluster, clients of the relays are anonymous."""
    trust, folder = cluster.trust, tmp_path_factory.mktemp("mtls")
    with make_front(folder / "muster", cluster, MTLS, SSL) as muster:
        fronted = Fronted(cluster, muster, trust.certify(ROOT), folder)
        here, there = f"{PREFIX}certified-here", f"{PREFIX}certified-there"
        fronted.take(here)
        alice, bob = trust.certify(ALICE), trust.certify(BOB)
        assert hear(muster.kafka, alice, here) == JOINED
        assert hear(muster.kafka, alice, there) == JOINED
        assert hear(muster.kafka, bob, here).startswith("GROUP_AUTHORIZATION_FAILED")
        # Who is nobody may do everything in this cluster.
        assert hear(muster.kafka, bob, there) == JOINED
        assert "SSL alert" in hear(muster.kafka, trust.fail_to_certify(ALICE), here)


@slow
@pytest.mark.parametrize("place", [THERE, HERE])
def test_javas_client(fronted: Fronted, place: str) -> None:
    trust, kafka = fronted.cluster.trust, Address(fronted.muster.kafka)
    cases = {
        ASSIGNED: trust.log_in(SCRAM_512, ALICE),
        "GroupAuthorizationException": trust.log_in(SCRAM_512, BOB),
        "SaslAuthenticationException": trust.fail_to_log_in(SCRAM_512, ALICE),
    }
    for said, security in cases.items():
        member = start("java", kafka, "one", group=place, security=security)
        try:
            wait_until(partial(has_said, member, said), member.describe)
            if said == ASSIGNED:
                # It leaves: the next would wait for one that is killed.
                member.close()
        finally:
            member.kill()


@slow
@pytest.mark.parametrize(
    ("listener", "upstream"),
    [
        (SASL_SSL, SASL_SSL),
        (SASL_PLAINTEXT, SASL_SSL),
        (SASL_PLAINTEXT, SASL_PLAINTEXT),
        (SSL, "PLAINTEXT"),
        (MTLS, "PLAINTEXT"),
        (SSL, SSL),
        ("PLAINTEXT", SSL),
    ],
)
def test_protocols_that_go_together(
    cluster: SecuredServer,
    tmp_path_factory: pytest.TempPathFactory,
    listener: str,
    upstream: str,
) -> None:
    trust, folder = cluster.trust, tmp_path_factory.mktemp("pair")
    has_users = listener.startswith("SASL")
    with make_front(folder / "muster", cluster, listener, upstream) as muster:
        root = trust.log_in(SCRAM_512, ROOT) if has_users else trust.certify(ROOT)
        fronted = Fronted(cluster, muster, root, folder)
        here, there = (f"{PREFIX}{listener}-{upstream}-{each}" for each in ("here", "there"))
        fronted.take(here)
        if has_users:
            alice = trust.log_in(SCRAM_512, ALICE, listener)
        elif listener == "PLAINTEXT":
            alice = Security()
        else:
            alice = trust.certify(ALICE)
        assert hear(muster.kafka, alice, there) == JOINED
        assert hear(muster.kafka, alice, here) == JOINED
