"""The ACLs in force, and which one decides a request, as in Kafka's ``StandardAuthorizerData``.

A request looks at the literal pattern of its name, at ``*``, and at one prefixed pattern for each
length that any has, up to where no prefix is like the name; in each, at the rules of its principal
and of ``User:*``. Its cost does not grow with the ACLs of other resources and principals.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple

from model.access.acls import (
    ANY_HOST,
    ANY_NAME,
    ANY_PRINCIPAL,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from security.hosts import canonize_host

_IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset(
        {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""Operations whose permission implies this one; what is denied implies nothing."""


class Request(NamedTuple):
    """One principal, calling from ``host`` (see ``hosts``), and what it asks for.

    ``groups``: further principals that it has at the moment, such as the scopes of its token.
    """

    principal: str
    host: str
    operation: Operation
    resource_type: ResourceType
    name: str
    groups: tuple[str, ...] = ()


class Cause(Enum):
    """Why a request was decided so, if no ACL did."""

    SUPER_USER = "super.users"
    NO_ACL_FOUND = "allow.everyone.if.no.acl.found"
    DEFAULT = "no ACL allows it"


class Decision(NamedTuple):
    """The decision, and the ACL or the cause that made it."""

    is_allowed: bool
    by: Acl | Cause


class AclIndex:
    """The ACLs of a server. Only replay adds and removes.

    ``version`` rises with each change, so that what was decided before can be told.
    """

    __slots__ = (
        "_by_principal",
        "_count",
        "_lengths",
        "_of_length",
        "_patterns",
        "_prefixes",
        "version",
    )

    def __init__(self) -> None:
        self._by_principal: dict[tuple[ResourcePattern, str], list[Acl]] = {}
        self._patterns: Counter[ResourcePattern] = Counter()
        self._lengths: dict[ResourceType, list[int]] = {}
        """The lengths that prefixed patterns have, each once, sorted."""
        self._of_length: Counter[tuple[ResourceType, int]] = Counter()
        """How many prefixed patterns have a length."""
        self._prefixes: dict[ResourceType, list[str]] = {}
        """The names of prefixed patterns, sorted."""
        self._count = 0
        self.version = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Acl]:
        for acls in self._by_principal.values():
            yield from acls

    def __contains__(self, acl: Acl) -> bool:
        return acl in self._by_principal.get((acl.pattern, acl.rule.principal), ())

    def add(self, acl: Acl) -> None:
        """Add an ACL, if it is not there."""
        if acl in self:
            return
        pattern = acl.pattern
        acls = self._by_principal.setdefault((pattern, acl.rule.principal), [])
        # By text, so that the same ACLs always name the same one as the decider.
        insort(acls, acl, key=_compute_order)
        if pattern.pattern_type is PatternType.PREFIXED and not self._patterns[pattern]:
            self._add_prefix(pattern)
        self._patterns[pattern] += 1
        self._count += 1
        self.version += 1

    def discard(self, acl: Acl) -> None:
        """Remove an ACL, if it is there."""
        pattern, principal = acl.pattern, acl.rule.principal
        acls = self._by_principal.get((pattern, principal), [])
        if acl not in acls:
            return
        acls.remove(acl)
        if not acls:
            del self._by_principal[pattern, principal]
        self._patterns[pattern] -= 1
        if not self._patterns[pattern]:
            del self._patterns[pattern]
            if pattern.pattern_type is PatternType.PREFIXED:
                self._discard_prefix(pattern)
        self._count -= 1
        self.version += 1

    def _add_prefix(self, pattern: ResourcePattern) -> None:
        length = len(pattern.name)
        insort(self._prefixes.setdefault(pattern.resource_type, []), pattern.name)
        if not self._of_length[pattern.resource_type, length]:
            insort(self._lengths.setdefault(pattern.resource_type, []), length)
        self._of_length[pattern.resource_type, length] += 1

    def _discard_prefix(self, pattern: ResourcePattern) -> None:
        length = len(pattern.name)
        prefixes = self._prefixes[pattern.resource_type]
        del prefixes[bisect_left(prefixes, pattern.name)]
        self._of_length[pattern.resource_type, length] -= 1
        if not self._of_length[pattern.resource_type, length]:
            del self._of_length[pattern.resource_type, length]
            lengths = self._lengths[pattern.resource_type]
            del lengths[bisect_left(lengths, length)]

    def find_patterns(self, resource_type: ResourceType, name: str) -> Iterator[ResourcePattern]:
        """The patterns with ACLs that this resource matches."""
        literal = ResourcePattern(resource_type, name)
        if literal in self._patterns:
            yield literal
        if name != ANY_NAME:
            everything = ResourcePattern(resource_type, ANY_NAME)
            if everything in self._patterns:
                yield everything
        prefixes = self._prefixes.get(resource_type, [])
        # The last one up to the name begins with each that the name begins with.
        nearest = prefixes[at - 1] if (at := bisect_right(prefixes, name)) else ""
        for length in self._lengths.get(resource_type, ()):
            if length > len(name) or not nearest.startswith(start := name[:length]):
                break
            prefix = ResourcePattern(resource_type, start, PatternType.PREFIXED)
            if prefix in self._patterns:
                yield prefix

    def decide(
        self,
        request: Request,
        *,
        super_users: frozenset[str] = frozenset(),
        allows_without_acl: bool = False,
    ) -> Decision:
        """Decide: super users, then a DENY, then an ALLOW, then the default.

        ``allows_without_acl`` allows what no pattern with any ACL matches
        (``allow.everyone.if.no.acl.found``).
        """
        if request.principal in super_users:
            return Decision(True, Cause.SUPER_USER)
        allowed_by: Acl | None = None
        has_acls = False
        for pattern in self.find_patterns(request.resource_type, request.name):
            has_acls = True
            for acl in self._find_rules(pattern, request):
                if acl.rule.permission is Permission.DENY:
                    return Decision(False, acl)
                allowed_by = allowed_by or acl
        if allowed_by is not None:
            return Decision(True, allowed_by)
        if allows_without_acl and not has_acls:
            return Decision(True, Cause.NO_ACL_FOUND)
        return Decision(False, Cause.DEFAULT)

    def allows_some(
        self,
        request: Request,
        *,
        super_users: frozenset[str] = frozenset(),
        allows_without_acl: bool = False,
    ) -> bool:
        """Whether there is a name, also of no resource yet, for which the request is allowed.

        As Kafka's ``authorizeByResourceType``, with the name of the request for one that no ACL
        is about. It looks at all ACLs.
        """
        if self.decide(
            request, super_users=super_users, allows_without_acl=allows_without_acl
        ).is_allowed:
            return True
        principals = {request.principal, ANY_PRINCIPAL, *request.groups}
        found: dict[Permission, set[ResourcePattern]] = {each: set() for each in Permission}
        for (pattern, principal), acls in self._by_principal.items():
            if pattern.resource_type is request.resource_type and principal in principals:
                for acl in acls:
                    if _is_of(acl, request.host) and _names(acl, request.operation):
                        found[acl.rule.permission].add(pattern)
        denied = found[Permission.DENY]
        if ResourcePattern(request.resource_type, ANY_NAME) in denied:
            return False
        shortest = _find_shortest(name for _, name, kind in denied if kind is PatternType.PREFIXED)
        return any(
            pattern not in denied and not _begins_with_one(pattern.name, shortest)
            for pattern in found[Permission.ALLOW]
        )

    def _find_rules(self, pattern: ResourcePattern, request: Request) -> Iterator[Acl]:
        for principal in dict.fromkeys((request.principal, ANY_PRINCIPAL, *request.groups)):
            for acl in self._by_principal.get((pattern, principal), ()):
                if _is_of(acl, request.host) and _speaks_of(acl, request.operation):
                    yield acl


def _is_of(acl: Acl, host: str) -> bool:
    """Whether the rule is about this address, however it writes one of IPv6."""
    named = acl.rule.host
    return named in (host, ANY_HOST) or (":" in named and canonize_host(named) == host)


def _names(acl: Acl, operation: Operation) -> bool:
    return acl.rule.operation in (operation, Operation.ALL)


def _find_shortest(prefixes: Iterable[str]) -> list[str]:
    """Those of the prefixes that begin with no other one, sorted."""
    shortest: list[str] = []
    for each in sorted(prefixes):
        if not shortest or not each.startswith(shortest[-1]):
            shortest.append(each)
    return shortest


def _begins_with_one(name: str, shortest: list[str]) -> bool:
    """Whether the name begins with one of the prefixes, none of which begins with another."""
    at = bisect_right(shortest, name)
    return at > 0 and name.startswith(shortest[at - 1])


def _speaks_of(acl: Acl, operation: Operation) -> bool:
    if _names(acl, operation):
        return True
    implied_by = _IMPLIED_BY.get(operation, frozenset())
    return acl.rule.permission is Permission.ALLOW and acl.rule.operation in implied_by


def _compute_order(acl: Acl) -> tuple[str, str, str]:
    rule = acl.rule
    return rule.permission.value, rule.host, rule.operation.value
