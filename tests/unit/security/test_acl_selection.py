"""In which commands many ACLs are created and deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest

from coordinator.core.state.steps import Steps, run_at_once
from model.access.acls import (
    ANY_HOST,
    Acl,
    Operation,
    Permission,
    ResourcePattern,
    ResourceType,
    Rule,
)
from model.commands.access import ACLS_PER_COMMAND_MAX
from security.acl_selection import SLICE, split_creations, split_deletions

ALLOW, DENY = Permission.ALLOW, Permission.DENY
Split = Callable[[Iterable[Acl]], Steps[list[tuple[Acl, ...]]]]


def make(number: int, permission: Permission) -> Acl:
    pattern = ResourcePattern(ResourceType.GROUP, f"g{number}")
    return Acl(pattern, Rule("User:alice", ANY_HOST, Operation.READ, permission))


@pytest.mark.parametrize(("split", "first"), [(split_creations, DENY), (split_deletions, ALLOW)])
def test_nobody_has_too_many_rights_between_two_commands(split: Split, first: Permission) -> None:
    acls = [make(number, (ALLOW, DENY)[number % 2]) for number in range(ACLS_PER_COMMAND_MAX)]
    commands = run_at_once(split([*acls, *acls, make(-1, first)]))
    half = len(acls) // 2
    assert [len(each) for each in commands] == [2 * half, 1], "each once"
    permissions = [acl.rule.permission for each in commands for acl in each]
    assert permissions[: half + 1] == [first] * (half + 1)
    assert first not in permissions[half + 1 :]


@pytest.mark.parametrize("split", [split_creations, split_deletions])
def test_many_are_split_in_slices(split: Split) -> None:
    """The hash of an ACL takes about a microsecond: 60,000 of them would hold the loop."""
    taken = 0

    def take() -> Iterator[Acl]:
        nonlocal taken
        for taken in range(1, 3 * SLICE + 1):
            yield make(taken, ALLOW)

    steps = split(take())
    for slices in range(1, 4):
        next(steps)
        assert taken == slices * SLICE
    with pytest.raises(StopIteration):
        next(steps)
