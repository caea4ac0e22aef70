"""Decides by the ACLs of the cluster, as they were last read there."""

from __future__ import annotations

from coordinator.runtime.audit import NO_AUDIT, Audit
from coordinator.runtime.authorizer import AclAuthorizer, AllowAll, Authorizer
from model.access.acls import Operation, ResourceType
from model.caller import Caller
from security.acl_index import AclIndex


class AllowNobody:
    """While it is not known who may do what, nobody may do anything."""

    version = 0

    def __init__(self, audit: Audit) -> None:
        self._audit = audit

    def authorize(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        self._audit.refused(caller, operation, resource_type, resource_name)
        return False

    def may_see(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        return False

    def may_see_some(
        self, caller: Caller, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return False


class MirroredAuthorizer:
    """The authorizer of a server in front of a cluster (``coordinator.runtime.authorizer``).

    It allows nothing before ``use_acls`` or ``allow_all`` was called. ``version`` rises with each
    change, so members whose rights have gone are refused at their next heartbeat.
    """

    __slots__ = ("_audit", "_exceptions", "_in_force")

    def __init__(self, audit: Audit = NO_AUDIT) -> None:
        self._audit = audit
        # One object with both, as a thread that matches regular expressions asks too: what it notes
        # by a version must have been decided at that version or a later one.
        self._in_force: tuple[Authorizer, int] = (AllowNobody(audit), 0)
        self._exceptions: tuple[frozenset[str], bool] = (frozenset(), False)

    @property
    def version(self) -> int:
        deciding, base = self._in_force
        return base + deciding.version

    @property
    def _deciding(self) -> Authorizer:
        return self._in_force[0]

    @property
    def is_open(self) -> bool:
        """Whether the cluster has no authorizer, so that all may do everything."""
        return isinstance(self._deciding, AllowAll)

    def authorize(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        return self._deciding.authorize(caller, operation, resource_type, resource_name)

    def may_see(
        self, caller: Caller, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        return self._deciding.may_see(caller, operation, resource_type, resource_name)

    def may_see_some(
        self, caller: Caller, operation: Operation, resource_type: ResourceType
    ) -> bool:
        return self._deciding.may_see_some(caller, operation, resource_type)

    # ------------------------------------------------------------------------- what the mirror says

    def use_acls(
        self, acls: AclIndex, super_users: frozenset[str], *, allows_without_acl: bool
    ) -> None:
        """Decide by these ACLs, which may change afterwards."""
        deciding, exceptions = self._deciding, (super_users, allows_without_acl)
        is_same = isinstance(deciding, AclAuthorizer) and exceptions == self._exceptions
        if is_same and isinstance(deciding, AclAuthorizer) and deciding.acls is acls:
            return
        made = AclAuthorizer(super_users, allows_without_acl=allows_without_acl, audit=self._audit)
        made.acls = acls
        self._exceptions = exceptions
        self._replace(made)

    def allow_all(self) -> None:
        """The cluster has no authorizer."""
        if not self.is_open:
            self._replace(AllowAll())

    def allow_nobody(self) -> None:
        """It is not known any more who may do what."""
        if not isinstance(self._deciding, AllowNobody):
            self._replace(AllowNobody(self._audit))

    def _replace(self, deciding: Authorizer) -> None:
        self._in_force = deciding, self.version + 1 - deciding.version
