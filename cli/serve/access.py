"""Makes the authorizer that the settings ask for."""

from __future__ import annotations

from cli.settings import Resolved
from cli.settings.tables.security_table import parse_super_users
from coordinator.runtime.audit import NO_AUDIT, Audit
from coordinator.runtime.authorizer import AclAuthorizer, AllowAll, Authorizer


def make_authorizer(resolved: Resolved, audit: Audit = NO_AUDIT) -> Authorizer:
    """The authorizer; it tells ``audit`` what it refuses."""
    if resolved.values["authorizer.class.name"] is None:
        return AllowAll()
    return AclAuthorizer(
        parse_super_users(str(resolved.values["super.users"] or "")),
        allows_without_acl=bool(resolved.values["allow.everyone.if.no.acl.found"]),
        audit=audit,
    )
