"""ACLs as DescribeAcls answers them, compared with those that are known, in slices of the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from model.access.acl_codes import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES
from model.access.acls import Acl, ResourcePattern, Rule
from security.acl_index import AclIndex

T = TypeVar("T")

SLICE: Final = 500
"""So many ACLs are looked at before others have a turn: some milliseconds."""
AT_ONCE: Final = 500
"""So many changes are made in one turn. With more, an index is built beside the one in force: no
request may be decided by a part of a change."""


class AclRow(NamedTuple):
    """An ACL by the numbers and texts of the response, which are quickly compared."""

    resource_type: int
    name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


Known: TypeAlias = dict[AclRow, Acl | None]
"""``None`` for one of a resource type or operation that nobody asks about here."""


class NotUnderstood(Exception):
    """An ACL that cannot be left out, as it may deny, and cannot be applied."""


@dataclass(frozen=True, slots=True)
class AclChange:
    """How the cluster's ACLs differ from the known ones."""

    added: Known
    gone: list[AclRow]

    def __bool__(self) -> bool:
        return bool(self.added or self.gone)


async def compute_change(known: Mapping[AclRow, Acl | None], resources: Iterable[Any]) -> AclChange:
    """Compare with the resources of a response. Raises ``NotUnderstood``."""
    added: Known = {}
    seen = 0
    kept: set[AclRow] = set()
    for resource in resources:
        pattern = (resource.resource_type, resource.resource_name, resource.pattern_type)
        for each in resource.acls:
            row = AclRow(*pattern, each.principal, each.host, each.operation, each.permission_type)
            if row in known:
                kept.add(row)
            elif row not in added:
                added[row] = make_acl(row)
            seen += 1
            if not seen % SLICE:
                await asyncio.sleep(0)
    gone: list[AclRow] = []
    if len(kept) != len(known):
        for number, row in enumerate(known):
            if row not in kept:
                gone.append(row)
            if not number % SLICE:
                await asyncio.sleep(0)
    return AclChange(added, gone)


def make_acl(row: AclRow) -> Acl | None:
    """The ACL, ``None`` if nobody asks about it here. Raises ``NotUnderstood``."""
    pattern_type, permission = PATTERN_TYPES.get(row.pattern_type), PERMISSIONS.get(row.permission)
    if pattern_type is None or permission is None:
        raise NotUnderstood(
            f"an ACL has the pattern type {row.pattern_type} and the permission {row.permission}"
        )
    resource_type, operation = RESOURCE_TYPES.get(row.resource_type), OPERATIONS.get(row.operation)
    if resource_type is None or operation is None:
        return None
    return Acl(
        ResourcePattern(resource_type, row.name, pattern_type),
        Rule(row.principal, row.host, operation, permission),
    )


async def apply_change(index: AclIndex, known: Known, change: AclChange) -> AclIndex:
    """Change ``known``, and return the index that is to be in force from now on."""
    gone = [acl for row in change.gone if (acl := known[row]) is not None]
    added = [acl for acl in change.added.values() if acl is not None]
    if len(gone) + len(added) > AT_ONCE:
        lost = set(change.gone)
        rows = {row: acl for row, acl in known.items() if row not in lost} | change.added
        index = await _build(acl for acl in rows.values() if acl is not None)
    else:
        for acl in gone:
            index.discard(acl)
        for acl in added:
            index.add(acl)
    for row in change.gone:
        del known[row]
    known.update(change.added)
    return index


async def _build(acls: Iterable[Acl]) -> AclIndex:
    index = AclIndex()
    for number, acl in enumerate(acls):
        index.add(acl)
        if not number % SLICE:
            await asyncio.sleep(0)
    return index
