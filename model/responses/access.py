"""Answers to commands about ACLs."""

from __future__ import annotations

from model.access.acls import Acl
from model.value import value


@value
class DeleteAclsResponse:
    """The ACLs that were deleted."""

    acls: tuple[Acl, ...]


@value
class DescribeAclsResponse:
    """All ACLs."""

    acls: tuple[Acl, ...]
