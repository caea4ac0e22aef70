"""How many ACLs there may be."""

from __future__ import annotations

import pytest

from coordinator.core.groups import acl_changes
from coordinator.core.groups.acl_changes import handle_create_acls
from model.access.acls import (
    ANY_HOST,
    Acl,
    Operation,
    Permission,
    ResourcePattern,
    ResourceType,
    Rule,
)
from model.caller import INTERNAL
from model.commands.access import CreateAcls
from model.errors import InvalidRequest
from security.acl_index import AclIndex


def make_acls(count: int, first: int = 0) -> tuple[Acl, ...]:
    rule = Rule("User:a", ANY_HOST, Operation.READ, Permission.ALLOW)
    return tuple(
        Acl(ResourcePattern(ResourceType.GROUP, f"g{number}"), rule)
        for number in range(first, first + count)
    )


def test_only_so_many_acls_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_changes, "ACLS_MAX", 5)
    acls = AclIndex()
    for acl in make_acls(3):
        acls.add(acl)
    with pytest.raises(InvalidRequest, match="at most 5"):
        handle_create_acls(acls, CreateAcls(INTERNAL, make_acls(3, 3)))
    made = handle_create_acls(acls, CreateAcls(INTERNAL, make_acls(5)))
    assert len(made.side) == 2, "those that are there count once"


def test_a_command_has_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acl_changes, "ACLS_PER_COMMAND_MAX", 5)
    with pytest.raises(InvalidRequest, match="at most 5"):
        handle_create_acls(AclIndex(), CreateAcls(INTERNAL, make_acls(6)))
