"""Which ACLs filters mean, and in which order many are changed; in time slices."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from itertools import chain, islice
from typing import Final, TypeAlias, TypeVar

from model.access.acl_codes import OPERATION_CODES, PERMISSION_CODES
from model.access.acls import Acl, AclFilter, Permission, ResourcePattern
from model.commands.access import ACLS_PER_COMMAND_MAX

T = TypeVar("T")

Steps: TypeAlias = Generator[None, None, T]
_Order: TypeAlias = tuple[str, str, str, str, str, int, int]
"""No two ACLs have the same one, so that ACLs themselves are never compared."""

SLICE: Final = 1_000
"""ACLs looked at between two yields, up to 5 µs each."""
_ROW_MAX: Final = 100
"""Rules in a row: a row is encoded at once."""


def select_acls(acls: Iterable[Acl], means: AclFilter) -> Steps[list[Acl]]:
    """Those of the ACLs that the filter means, by resource pattern."""
    found: list[tuple[_Order, Acl]] = []
    left = iter(acls)
    while taken := list(islice(left, SLICE)):
        found += ((_compute_order(acl), acl) for acl in taken if means.means(acl))
        yield
    found.sort()
    return [acl for _, acl in found]


def group_by_pattern(acls: Sequence[Acl]) -> Steps[list[tuple[ResourcePattern, list[Acl]]]]:
    """The ACLs of each pattern; a pattern with very many has several rows, each small."""
    rows: list[tuple[ResourcePattern, list[Acl]]] = []
    for number, acl in enumerate(acls, 1):
        if not rows or rows[-1][0] != acl.pattern or len(rows[-1][1]) == _ROW_MAX:
            rows.append((acl.pattern, []))
        rows[-1][1].append(acl)
        if number % SLICE == 0:
            yield
    return rows


def _compute_order(acl: Acl) -> _Order:
    pattern, rule = acl
    return (
        pattern.resource_type.value,
        pattern.name,
        pattern.pattern_type.value,
        rule.principal,
        rule.host,
        OPERATION_CODES[rule.operation],
        PERMISSION_CODES[rule.permission],
    )


def split_creations(acls: Iterable[Acl]) -> Steps[list[tuple[Acl, ...]]]:
    """The ACLs of each command: what is denied first, so that nobody ever has too many rights."""
    return _split(acls, Permission.DENY)


def split_deletions(acls: Iterable[Acl]) -> Steps[list[tuple[Acl, ...]]]:
    """The ACLs of each command: what is allowed first, so that nobody ever has too many rights."""
    return _split(acls, Permission.ALLOW)


def _split(acls: Iterable[Acl], first: Permission) -> Steps[list[tuple[Acl, ...]]]:
    earlier: dict[Acl, None] = {}
    later: dict[Acl, None] = {}
    for number, acl in enumerate(acls, 1):
        (earlier if acl.rule.permission is first else later)[acl] = None
        if number % SLICE == 0:
            yield
    commands = []
    left = chain(earlier, later)
    while taken := tuple(islice(left, ACLS_PER_COMMAND_MAX)):
        commands.append(taken)
    return commands
