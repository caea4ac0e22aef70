"""Who decides what a caller may do. Front ends ask before they make a command."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from coordinator.runtime.audit import NO_AUDIT, Audit
from model.access.acls import Operation, ResourceType
from model.caller import Caller
from security.acl_index import AclIndex, Decision, Request
from security.hosts import canonize_host

REMEMBERED_MAX: Final = 100_000
"""Decisions that are kept until the ACLs change; with more, all are forgotten."""
REMEMBERED_NAME_MAX: Final = 256
"""Of longer names none is kept: a client may choose 32,767 bytes, and ever new ones."""
SCOPES_MAX: Final = 1_000
"""Different scopes of tokens that are kept with the decisions, once each; with more, all are
forgotten."""
_NOBODYS_NAME: Final = "hardcode"
"""Kafka's own name for a resource that no ACL is about."""


class _SomeResource(NamedTuple):
    """A request without a name: one field less, so it equals no ``Request``."""

    principal: str
    host: str
    operation: Operation
    resource_type: ResourceType
    groups: tuple[str, ...]


class Authorizer(Protocol):
    """Decides for one caller, operation and resource. Must not block."""

    @property
    def version(self) -> int:
        """Changes with what is decided: what was allowed at this version still is."""

    def authorize(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        """Whether ``caller`` may do ``operation`` on the resource; a refusal is noted."""

    def may_see(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        """The same, where a denial refuses nothing that the caller asked for.

        So it is where lists leave out what the caller may not see, and where another right would
        do as well.
        """

    def may_see_some(
        self, caller: Caller, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """The same for any resource of the type, whether it is there or not."""


class AllowAll:
    """The authorizer of a server without access control."""

    version = 0

    def authorize(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        return True

    may_see = authorize

    def may_see_some(
        self, caller: Caller, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return True


class AclAuthorizer:
    """Decides by the server's ACLs, as Kafka's ``StandardAuthorizer``.

    ``acls`` are those of the server: what replay changes there is in force with the next request.
    ``audit`` is told each refusal.
    """

    __slots__ = (
        "_allows_without_acl",
        "_audit",
        "_decided",
        "_decided_at",
        "_scopes",
        "_super_users",
        "acls",
    )

    def __init__(
        self,
        super_users: frozenset[str] = frozenset(),
        *,
        allows_without_acl: bool = False,
        audit: Audit = NO_AUDIT,
    ) -> None:
        self.acls = AclIndex()
        self._audit = audit
        self._super_users = super_users
        self._allows_without_acl = allows_without_acl
        self._decided: dict[Request | _SomeResource, bool] = {}
        self._decided_at = self.acls.version
        self._scopes: dict[tuple[str, ...], tuple[str, ...]] = {}

    @property
    def version(self) -> int:
        return self.acls.version

    def authorize(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        if self.may_see(caller, operation, resource_type, resource_name):
            return True
        self._audit.refused(caller, operation, resource_type, resource_name)
        return False

    def may_see(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        request = Request(
            caller.principal,
            caller.client_host,
            operation,
            resource_type,
            resource_name,
            caller.groups,
        )
        if len(resource_name) > REMEMBERED_NAME_MAX:
            return self.decide(request).is_allowed
        decided = self._find_decided()
        known = decided.get(request)
        if known is None:
            known = self.decide(request).is_allowed
            decided[request._replace(groups=self._keep_scopes(caller))] = known
        return known

    def may_see_some(
        self, caller: Caller, operation: Operation, resource_type: ResourceType
    ) -> bool:
        decided = self._find_decided()
        asked = _SomeResource(
            caller.principal, caller.client_host, operation, resource_type, caller.groups
        )
        known = decided.get(asked)
        if known is None:
            request = Request(
                caller.principal,
                canonize_host(caller.client_host.removeprefix("/")),
                operation,
                resource_type,
                _NOBODYS_NAME,
                caller.groups,
            )
            asked = asked._replace(groups=self._keep_scopes(caller))
            known = decided[asked] = self.acls.allows_some(
                request,
                super_users=self._super_users,
                allows_without_acl=self._allows_without_acl,
            )
        return known

    def _find_decided(self) -> dict[Request | _SomeResource, bool]:
        """What was decided by the ACLs that are in force."""
        decided, version = self._decided, self.acls.version
        is_full = len(decided) >= REMEMBERED_MAX or len(self._scopes) >= SCOPES_MAX
        if self._decided_at != version or is_full:
            # A new one, and before its version: the thread that matches regular expressions may
            # still be deciding by the former ACLs, and must not note that among the new ones.
            decided = self._decided = {}
            self._decided_at = version
            self._scopes = {}
        return decided

    def _keep_scopes(self, caller: Caller) -> tuple[str, ...]:
        """The caller's scopes, as they are kept: equal ones of many connections once."""
        return self._scopes.setdefault(caller.groups, caller.groups)

    def decide(self, request: Request) -> Decision:
        """Decide, and say by which ACL. The host may begin with a slash: ``/127.0.0.1``."""
        return self.acls.decide(
            request._replace(host=canonize_host(request.host.removeprefix("/"))),
            super_users=self._super_users,
            allows_without_acl=self._allows_without_acl,
        )
