"""Requests are decided by the ACLs of the cluster: what changes there, is refused, or is away."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from cli.settings.tables.security_table import parse_super_users
from model.access.acls import Acl, Operation, ResourceType
from model.caller import Caller
from model.errors import ErrorCode
from security.acl_index import AclIndex, Request
from tests.support.security.sasl_door import Told
from tests.support.upstream.access_cluster import AccessCluster, acl, make_resource
from tests.support.waiting import until
from upstream.cluster.cluster import Cluster, ClusterUnreachable
from upstream.rights import acl_rows
from upstream.rights.acl_mirror import AclMirror, AclMirrorSettings, AclsRefused
from upstream.rights.acl_rows import NotUnderstood
from upstream.rights.exceptions import Exceptions
from upstream.rights.mirrored_authorizer import MirroredAuthorizer
from upstream.statistics import UpstreamStatistics

READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
GROUP, TOPIC = ResourceType.GROUP, ResourceType.TOPIC


class Rig:
    """A mirror, and who may do what by it."""

    def __init__(self, *acls: Acl, own: Exceptions | None = None, **settings: Any) -> None:
        self.cluster = AccessCluster(acls)
        self.authorizer = MirroredAuthorizer()
        self.statistics = UpstreamStatistics()
        self.mirror = AclMirror(
            cast(Cluster, self.cluster),
            self.authorizer,
            AclMirrorSettings("User:muster", own or Exceptions(), parse_super_users, **settings),
            self.statistics,
        )

    def may(
        self, user: str, operation: Operation = READ, name: str = "g", kind: ResourceType = GROUP
    ) -> bool:
        caller = Caller(f"User:{user}", "c", "/10.0.0.1")
        return self.authorizer.authorize(caller, operation, kind, name)


@asynccontextmanager
async def running(rig: Rig) -> AsyncIterator[None]:
    rig.mirror.start()
    try:
        yield
    finally:
        await rig.mirror.stop()


# ---------------------------------------------------------------------------- what is mirrored


def test_nobody_may_do_anything_before_the_acls_were_read() -> None:
    rig = Rig(acl("alice", READ), own=Exceptions(frozenset({"User:root"}), True))
    assert not rig.may("alice")
    assert not rig.may("root")
    caller = Caller("User:root", "c", "/10.0.0.1")
    assert not rig.authorizer.may_see(caller, READ, GROUP, "g")
    assert not rig.authorizer.may_see_some(caller, READ, GROUP)


async def test_the_clusters_acls_decide() -> None:
    rig = Rig(
        acl("alice", READ, "app-", is_prefix=True),
        acl("alice", READ, "app-secret", is_denied=True),
        acl("bob", WRITE, "orders", TOPIC),
    )
    assert rig.statistics.compute_acl_age_s() is None
    await rig.mirror.read()
    age_s = rig.statistics.compute_acl_age_s()
    assert age_s is not None
    assert 0 <= age_s < 60
    assert rig.may("alice", READ, "app-1")
    assert not rig.may("alice", READ, "app-secret")
    assert not rig.may("bob", READ, "app-1")
    assert rig.may("bob", DESCRIBE, "orders", TOPIC)
    assert rig.mirror.count == 3


async def test_what_changes_in_the_cluster_changes_here_and_in_the_version() -> None:
    rig = Rig(acl("alice", READ), acl("bob", READ))
    await rig.mirror.read()
    version = rig.authorizer.version
    await rig.mirror.read()
    assert rig.authorizer.version == version
    rig.cluster.acls = [acl("bob", READ), acl("carol", READ)]
    await rig.mirror.read()
    assert [rig.may(user) for user in ("alice", "bob", "carol")] == [False, True, True]
    assert rig.authorizer.version > version


async def test_a_right_that_is_taken_away_is_gone_with_the_next_reading() -> None:
    rig = Rig(acl("alice", READ), interval_ms=1)
    async with running(rig):
        await rig.mirror.wait_until_read()
        assert rig.may("alice")
        rig.cluster.acls.clear()
        await until(lambda: not rig.may("alice"), "the right is gone")


@pytest.mark.parametrize("at_once", [0, 3, 10_000])
async def test_any_change_leads_to_the_clusters_acls(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many change: a few are changed in place, with more an index is built beside."""
    monkeypatch.setattr(acl_rows, "AT_ONCE", at_once)
    monkeypatch.setattr(acl_rows, "SLICE", 7)
    chance = random.Random(20)
    all_acls = [
        acl(user, operation, name, kind, is_prefix=is_prefix, is_denied=is_denied)
        for user in ("alice", "bob")
        for operation in (READ, DESCRIBE)
        for name in ("a", "ab", "*")
        for kind in (GROUP, TOPIC)
        for is_prefix in (False, True)
        for is_denied in (False, True)
    ]
    rig = Rig()
    versions = []
    for size in (40, 41, 3, 0, 0, 90, 96):
        rig.cluster.acls = chance.sample(all_acls, size)
        await rig.mirror.read()
        versions.append(rig.authorizer.version)
        oracle = AclIndex()
        for each in rig.cluster.acls:
            oracle.add(each)
        for name in ("a", "ab", "abc", "b"):
            for operation in (READ, DESCRIBE):
                asked = Request("User:alice", "10.0.0.1", operation, GROUP, name)
                assert rig.may("alice", operation, name) == oracle.decide(asked).is_allowed
        assert rig.mirror.count == size
    assert versions == sorted(versions)
    assert len(set(versions)) == len(versions) - 1


async def test_no_request_is_decided_by_a_part_of_a_change() -> None:
    """Old: alice may by a literal ACL; new: by another one. She may at any moment."""
    many = [acl(f"u{number}", READ) for number in range(3_000)]
    rig = Rig(acl("alice", READ), *many[:1_500])
    await rig.mirror.read()
    rig.cluster.acls = [*many[1_500:], acl("alice", READ, "g", is_prefix=True)]
    reading = asyncio.create_task(rig.mirror.read())
    turns = 0
    while not reading.done():
        assert rig.may("alice")
        turns += 1
        await asyncio.sleep(0)
    assert turns > 5
    assert rig.may("u2999")
    assert not rig.may("u0")


# --------------------------------------------------------------------- clusters of other kinds


async def test_all_may_in_a_cluster_without_an_authorizer_until_it_has_one() -> None:
    rig = Rig()
    rig.cluster.code = ErrorCode.SECURITY_DISABLED
    await rig.mirror.read()
    assert rig.authorizer.is_open
    assert rig.may("anybody")
    version = rig.authorizer.version
    rig.cluster.code = 0
    rig.cluster.acls = [acl("alice", READ)]
    await rig.mirror.read()
    assert [rig.may("anybody"), rig.may("alice")] == [False, True]
    assert rig.authorizer.version > version
    rig.cluster.code = ErrorCode.SECURITY_DISABLED
    await rig.mirror.read()
    assert rig.may("anybody")
    rig.cluster.code = 0
    await rig.mirror.read()
    assert [rig.may("anybody"), rig.may("alice")] == [False, True]


async def test_musters_own_settings_hold_where_the_brokers_show_none() -> None:
    rig = Rig(acl("alice", READ), own=Exceptions(frozenset({"User:root"}), True))
    rig.cluster.configs = {"super.users": None}
    await rig.mirror.read()
    assert rig.may("root")
    assert rig.may("bob", READ, "of nobody")
    assert not rig.may("bob")


async def test_what_the_brokers_show_is_used() -> None:
    rig = Rig(own=Exceptions(frozenset({"User:root"}), True))
    rig.cluster.configs = {
        "super.users": "User:admin;User:ops",
        "allow.everyone.if.no.acl.found": "false",
    }
    await rig.mirror.read()
    assert [rig.may(user) for user in ("root", "admin", "ops", "bob")] == [False, True, True, False]


async def test_an_acl_on_something_unknown_is_left_out_but_not_a_pattern() -> None:
    rig = Rig(acl("alice", READ))
    rig.cluster.rows = [
        make_resource(99, "x", 3, ("User:alice", "*", 3, 3)),
        make_resource(3, "g", 3, ("User:alice", "*", 99, 2)),
    ]
    await rig.mirror.read()
    assert rig.may("alice")
    rig.cluster.rows = [make_resource(3, "g", 9, ("User:alice", "*", 3, 2))]
    with pytest.raises(NotUnderstood):
        await rig.mirror.read()


# ------------------------------------------------------------------------- refused, or away


async def test_a_cluster_that_cannot_be_reached_leaves_what_is_known_in_force() -> None:
    rig = Rig(acl("alice", READ), interval_ms=1, stale_max_ms=1)
    async with running(rig):
        await rig.mirror.wait_until_read()
        rig.cluster.is_reachable = False
        await until(lambda: rig.mirror.fault, "the fault")
        asked = len(rig.cluster.asked)
        await until(lambda: len(rig.cluster.asked) > asked + 5, "more tries")
        assert rig.may("alice")
        assert not rig.may("bob")
        rig.cluster.is_reachable = True
        await until(lambda: rig.mirror.fault is None, "it is read again")
    rig.cluster.is_reachable = False
    with pytest.raises(ClusterUnreachable):
        await rig.mirror.read()


async def test_a_cluster_that_does_not_show_its_acls_any_more_ends_what_is_known() -> None:
    rig = Rig(acl("alice", READ), interval_ms=1, stale_max_ms=1)
    async with running(rig):
        await rig.mirror.wait_until_read()
        version = rig.authorizer.version
        rig.cluster.code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        await until(lambda: not rig.may("alice"), "nobody may")
        assert rig.authorizer.version > version
        rig.cluster.code = 0
        await until(lambda: rig.may("alice"), "it is read again")


async def test_a_short_refusal_ends_nothing() -> None:
    rig = Rig(acl("alice", READ), interval_ms=1, stale_max_ms=3_600_000)
    async with running(rig):
        await rig.mirror.wait_until_read()
        rig.cluster.code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        await until(lambda: rig.mirror.fault, "the fault")
        assert rig.may("alice")


async def test_the_fault_names_the_right_that_is_missing() -> None:
    rig = Rig()
    rig.cluster.code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    with pytest.raises(AclsRefused) as refused:
        await rig.mirror.read()
    assert str(refused.value) == (
        "the cluster refuses User:muster, which is Muster: it needs DESCRIBE on the cluster "
        "(kafka-acls --add --allow-principal User:muster --operation Describe --cluster)"
    )
    assert not rig.may("anybody")


async def test_an_error_that_nobody_thought_of_does_not_end_the_mirror() -> None:
    rig = Rig(acl("alice", READ), interval_ms=1)
    async with running(rig):
        await rig.mirror.wait_until_read()
        rig.cluster.rows = [object()]
        await until(lambda: rig.mirror.fault, "the fault")
        rig.cluster.rows = []
        rig.cluster.acls.clear()
        await until(lambda: not rig.may("alice"), "it reads on")


def test_refusals_are_told() -> None:
    refusals: list[tuple[Any, ...]] = []

    class Refusals(Told):
        def refused(self, *refusal: Any) -> None:
            refusals.append(refusal)

    caller = Caller("User:alice", "c", "/10.0.0.1")
    authorizer = MirroredAuthorizer(cast(Any, Refusals()))
    authorizer.authorize(caller, READ, GROUP, "g")
    authorizer.use_acls(AclIndex(), frozenset(), allows_without_acl=False)
    authorizer.authorize(caller, READ, GROUP, "g")
    assert refusals == [(caller, READ, GROUP, "g")] * 2
