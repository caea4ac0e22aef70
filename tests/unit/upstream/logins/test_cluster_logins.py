"""Passwords and tokens of the gRPC door are checked by logins at the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from coordinator.service.credentials.login_checks import LoginChecks
from coordinator.service.credentials.presented import UserPassword
from coordinator.service.credentials.verifiers import CannotVerify
from model.secret import Secret
from security.identity import Identity
from security.sasl.claimed_names import make_name_readers
from security.sasl.conversation import OAUTHBEARER, Authenticated, NotAuthenticated
from tests.support.security.scram import PASSWORD
from tests.support.security.tokens import NOW_S, sign
from tests.support.upstream.fake_broker import AUTHENTICATE, HANDSHAKE, Act
from tests.support.upstream.fake_login import USER
from tests.support.upstream.guarded_cluster import GuardedCluster, guarded_cluster
from upstream.logins.cluster_logins import ClusterLogins

PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class AnyToken:
    """OAUTHBEARER at a broker that takes every token but one."""

    name = OAUTHBEARER

    def begin(self, nonce: str) -> AnyToken:
        return self

    def answer(self, token: bytes, now_s: float) -> Authenticated:
        if b"refused" in token:
            raise NotAuthenticated("no")
        return Authenticated(Identity("User:of the broker"))


@pytest.fixture
async def guarded() -> AsyncIterator[GuardedCluster]:
    async with guarded_cluster() as made:
        made.login.mechanisms[OAUTHBEARER] = AnyToken()
        yield made


def make_logins(guarded: GuardedCluster, mechanism: str, timeout_ms: int = 5_000) -> ClusterLogins:
    reader = make_name_readers()[mechanism]
    return ClusterLogins(
        guarded.client, mechanism, reader, timeout_ms=timeout_ms, now_s=lambda: NOW_S
    )


@pytest.mark.parametrize("mechanism", PASSWORDS)
async def test_a_right_password(guarded: GuardedCluster, mechanism: str) -> None:
    logins = make_logins(guarded, mechanism)
    assert await logins.verify(USER, PASSWORD) == Identity(f"User:{USER}")
    # One connection for each check, and none is left.
    before = guarded.brokers[1].connections
    await logins.verify(USER, PASSWORD)
    assert guarded.brokers[1].connections == before + 1


@pytest.mark.parametrize("mechanism", PASSWORDS)
@pytest.mark.parametrize(("user", "password"), [(USER, "guess"), ("nobody", PASSWORD)])
async def test_a_wrong_one(
    guarded: GuardedCluster, mechanism: str, user: str, password: str
) -> None:
    with pytest.raises(NotAuthenticated):
        await make_logins(guarded, mechanism).verify(user, password)


@pytest.mark.parametrize("mechanism", PASSWORDS)
@pytest.mark.parametrize("user", ["a\0b", "a\nb", f"x\0{USER}", "a" * 100_000])
async def test_a_name_that_could_be_read_in_two_ways_is_not_sent(
    guarded: GuardedCluster, mechanism: str, user: str
) -> None:
    before = guarded.brokers[1].connections
    with pytest.raises(NotAuthenticated):
        await make_logins(guarded, mechanism).verify(user, PASSWORD)
    assert guarded.brokers[1].connections == before


async def test_a_token(guarded: GuardedCluster) -> None:
    logins = make_logins(guarded, OAUTHBEARER)
    token = sign(sub="carol", exp=NOW_S + 60)
    assert await logins.verify("", token) == Identity(
        "User:carol", expires_at_ms=(NOW_S + 60) * 1_000
    )
    guarded.login.lifetime_ms = 10_000
    found = await logins.verify("", token)
    assert found.expires_at_ms == (NOW_S + 10) * 1_000


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "a b", sign(sub="x\ny"), "\xff.\xff.\xff"])
async def test_what_is_no_token(guarded: GuardedCluster, token: str) -> None:
    with pytest.raises(NotAuthenticated):
        await make_logins(guarded, OAUTHBEARER).verify("", token)


async def test_a_token_that_the_cluster_refuses(guarded: GuardedCluster) -> None:
    guarded.brokers.answer(AUTHENTICATE, lambda asked: {"auth_bytes": b'{"status":"invalid"}'})
    with pytest.raises(NotAuthenticated):
        await make_logins(guarded, OAUTHBEARER).verify("", sign())


async def test_a_server_that_does_not_know_the_password_lets_nobody_in(
    guarded: GuardedCluster,
) -> None:
    guarded.brokers.answer(AUTHENTICATE, lambda asked: {"auth_bytes": b"v=AAAA"})
    with pytest.raises(NotAuthenticated):
        await make_logins(guarded, "SCRAM-SHA-256").verify(USER, PASSWORD)


@pytest.mark.parametrize("act", [Act.SILENCE, Act.CLOSE])
@pytest.mark.parametrize("key", [HANDSHAKE, AUTHENTICATE])
async def test_a_lost_answer_says_nothing_of_the_password(
    guarded: GuardedCluster, key: int, act: Act
) -> None:
    guarded.brokers.answer(key, lambda asked: act)
    with pytest.raises(CannotVerify):
        await make_logins(guarded, "PLAIN", timeout_ms=200).verify(USER, PASSWORD)


async def test_a_mechanism_that_the_cluster_does_not_have_is_no_wrong_password(
    guarded: GuardedCluster,
) -> None:
    del guarded.login.mechanisms["SCRAM-SHA-512"]
    with pytest.raises(CannotVerify):
        await make_logins(guarded, "SCRAM-SHA-512").verify(USER, PASSWORD)


async def test_calls_at_once_share_a_login_that_is_remembered_for_a_while(
    guarded: GuardedCluster,
) -> None:
    checks = LoginChecks(make_logins(guarded, "PLAIN"), b"k")
    presented = UserPassword(USER, Secret(PASSWORD))
    before = guarded.brokers[1].connections
    found = await asyncio.gather(
        *(checks.check(presented, "host", f"c{number}", 100) for number in range(50))
    )
    assert set(found) == {Identity(f"User:{USER}")}
    assert guarded.brokers[1].connections == before + 1
    assert checks.find(presented, 159) == found[0]
    assert checks.find(presented, 161) is None
