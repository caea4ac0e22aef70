"""What an authorizer keeps of what it was asked."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import pytest

from coordinator.runtime import authorizer as module
from coordinator.runtime.authorizer import REMEMBERED_NAME_MAX, AclAuthorizer
from model.access.acls import (
    ANY_HOST,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    Rule,
)
from model.caller import Caller

ALICE = Caller("User:alice", "c", "/10.0.0.1")
NAME_BYTES = 32_767
"""The longest string of Kafka's protocol."""


def test_names_of_any_length_are_decided_and_long_ones_are_not_kept() -> None:
    authorizer = AclAuthorizer()
    rule = Rule("User:alice", ANY_HOST, Operation.READ, Permission.ALLOW)
    pattern = ResourcePattern(ResourceType.GROUP, "a", PatternType.PREFIXED)
    authorizer.acls.add(Acl(pattern, rule))
    for size in (REMEMBERED_NAME_MAX, REMEMBERED_NAME_MAX + 1, NAME_BYTES):
        for name, is_allowed in (("a" * size, True), ("b" * size, False)):
            for _ in range(2):
                asked = (Operation.READ, ResourceType.GROUP, name)
                assert authorizer.authorize(ALICE, *asked) is is_allowed


def test_a_client_with_ever_new_names_does_not_fill_the_memory() -> None:
    authorizer = AclAuthorizer()
    tracemalloc.start()
    try:
        for number in range(300):
            name = f"{number}".ljust(NAME_BYTES, "x")
            assert not authorizer.may_see(ALICE, Operation.READ, ResourceType.GROUP, name)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 10 * NAME_BYTES


def test_the_host_that_is_asked_about_may_be_written_in_any_way() -> None:
    """Of a check that a person asks for; requests have it as Java prints it."""
    authorizer = AclAuthorizer()
    rule = Rule("User:alice", "2001:db8::1", Operation.READ, Permission.ALLOW)
    authorizer.acls.add(Acl(ResourcePattern(ResourceType.GROUP, "g"), rule))
    for host in ("/2001:db8:0:0:0:0:0:1", "2001:db8::1", "2001:DB8:0::1"):
        caller = Caller("User:alice", "c", host)
        assert authorizer.authorize(caller, Operation.READ, ResourceType.GROUP, "g")


def test_only_so_many_decisions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED_MAX", 50)
    authorizer = AclAuthorizer()
    for number in range(500):
        assert not authorizer.may_see(ALICE, Operation.READ, ResourceType.GROUP, f"g-{number}")
        assert len(authorizer._decided) <= 50


def test_equal_scopes_are_kept_once_and_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SCOPES_MAX", 10)
    authorizer = AclAuthorizer()
    for number in range(30):
        scopes = tuple(f"Group:{'s' * 200}-{each}" for each in range(100))
        caller = replace(ALICE, groups=scopes)
        authorizer.may_see(caller, Operation.READ, ResourceType.GROUP, f"g-{number}")
        authorizer.may_see_some(caller, Operation.READ, ResourceType.GROUP)
    assert len({id(request.groups) for request in authorizer._decided}) == 1
    for number in range(100):
        caller = replace(ALICE, groups=(f"Group:{number}",))
        authorizer.may_see(caller, Operation.READ, ResourceType.GROUP, "mine")
        assert len({request.groups for request in authorizer._decided}) <= 10
